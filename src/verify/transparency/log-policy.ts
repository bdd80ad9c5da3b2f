import * as z from 'zod'
import { parseNoteKey, type NoteKey } from './signed-note.ts'
import { TransparencyError } from './transparency-error.ts'

/** The log that a relying party trusts, its accepted witnesses, and how many of them must have cosigned its tree. */
export interface LogPolicy {
  readonly log: NoteKey
  readonly witnesses: readonly NoteKey[]
  /** How many of the witnesses must have cosigned. */
  readonly quorum: number
  /** Maximum age of the quorum in seconds; undefined: unlimited. */
  readonly maxAgeSeconds: number | undefined
  /** Whether a release that is not in the log is refused or only reported. */
  readonly required: boolean
}

const policySchema = z.strictObject({
  /** Verifier key of the log, `<origin>+<hex id>+<base64>`. */
  log: z.string(),
  /** Verifier keys of witnesses. */
  witnesses: z.array(z.string()).max(64).default([]),
  quorum: z.int().min(0),
  max_age_seconds: z.int().min(1).optional(),
  required: z.boolean().default(true),
})

/**
 * Reads a policy document: `{"log", "witnesses", "quorum", "max_age_seconds", "required"}`.
 * @throws TransparencyError when a member is missing, unknown or contradicts another: `malformed_key`
 */
export function readLogPolicy(document: unknown): LogPolicy {
  const parsed = policySchema.safeParse(document)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new TransparencyError(
      'malformed_key',
      `the log policy: ${issue?.path.join('.')}: ${issue?.message}`,
    )
  }
  const { log: logText, witnesses: texts, quorum, max_age_seconds: maxAgeSeconds } = parsed.data
  const log = keyOf(logText, 'ed25519')
  const witnesses = texts.map((text) => keyOf(text, 'cosignature'))
  const ownKeys = new Set(witnesses.map(({ publicKey }) => publicKey.join()))
  if (ownKeys.size !== witnesses.length) throw contradiction('names one witness twice')
  if (quorum > witnesses.length) throw contradiction('asks for more witnesses than it names')
  if (quorum === 0 && maxAgeSeconds !== undefined) {
    throw contradiction('limits the age of a checkpoint that no witness has to date')
  }
  return { log, witnesses, quorum, maxAgeSeconds, required: parsed.data.required }
}

function keyOf(text: string, type: NoteKey['type']): NoteKey {
  const key = parseNoteKey(text)
  if (key.type === type) return key
  throw contradiction(`has a key of the wrong kind under the name ${key.name}`)
}

function contradiction(what: string): TransparencyError {
  return new TransparencyError('malformed_key', `the log policy ${what}`)
}
