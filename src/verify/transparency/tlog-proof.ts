import { toBase64, type Bytes } from '../../protocol/bytes.ts'
import {
  checkLogSignature,
  cosignedAt,
  decodeHash,
  parseCheckpoint,
  type Checkpoint,
} from './checkpoint.ts'
import { hashLeaf, rootFromInclusion } from './merkle.ts'
import { equalBytes } from '../../protocol/bytes.ts'
import { parseNote, type SignedNote } from './signed-note.ts'
import type { LogPolicy } from './log-policy.ts'
import { TransparencyError } from './transparency-error.ts'

/** A proof that an entry is in a log, verifiable offline (c2sp.org/tlog-proof). */
export interface TlogProof {
  readonly index: number
  readonly hashes: readonly Bytes[]
  /** The checkpoint as the log published it, with all signatures. */
  readonly checkpoint: string
}

/** The result of verifying a proof under a policy. */
export interface LoggedEntry {
  readonly index: number
  readonly checkpoint: Checkpoint
  /** The witnesses of the policy that cosigned, with the time in seconds since the epoch. */
  readonly witnesses: readonly { readonly name: string; readonly seconds: number }[]
  /**
   * Until when the quorum is recent enough for the policy, in seconds since the epoch; infinite if the policy has no
   * limit.
   */
  readonly until: number
}

const HEADER = 'c2sp.org/tlog-proof@v1'
const INDEX = /^index (0|[1-9]\d{0,15})$/
/** A tree of 2^53 entries is not deeper. */
const MAX_HASHES = 53
/** How far the clock of a witness may be ahead, seconds. */
const WITNESS_AHEAD_SECONDS = 300

/** @throws TransparencyError when the text is malformed: `malformed_proof` */
export function parseTlogProof(text: string): TlogProof {
  const split = text.indexOf('\n\n')
  const [header, ...lines] = text.slice(0, Math.max(split, 0)).split('\n')
  // Extra data is ignored because it is not authenticated.
  if (lines[0]?.startsWith('extra ')) lines.shift()
  const index = INDEX.exec(lines.shift() ?? '')?.[1]
  if (header !== HEADER || index === undefined || lines.length > MAX_HASHES) throw malformed()
  try {
    return {
      index: Number(index),
      hashes: lines.map(decodeHash),
      checkpoint: text.slice(split + 2),
    }
  } catch (cause) {
    throw cause instanceof TransparencyError ? malformed(cause) : cause
  }
}

export function formatTlogProof({ index, hashes, checkpoint }: TlogProof): string {
  const lines = [HEADER, `index ${index}`, ...hashes.map(toBase64), '', checkpoint]
  return lines.join('\n')
}

/**
 * Checks that an entry is in the log of the policy, in a tree that enough of its witnesses have cosigned recently.
 * @param entry the bytes of the entry, such as the compact JWS of a trust bundle
 * @param now seconds since the epoch
 * @throws TransparencyError with the fault, when the proof is not valid
 */
export function checkTlogProof(
  proofText: string,
  entry: Uint8Array,
  policy: LogPolicy,
  now: number,
): LoggedEntry {
  const proof = parseTlogProof(proofText)
  const note = parseNote(proof.checkpoint)
  checkLogSignature(note, policy.log)
  const checkpoint = parseCheckpoint(note.text)
  if (checkpoint.origin !== policy.log.name) {
    throw new TransparencyError('unknown_log', `the checkpoint is of the log ${checkpoint.origin}`)
  }
  const root = rootFromInclusion(hashLeaf(entry), proof.index, checkpoint.size, proof.hashes)
  if (!equalBytes(root, checkpoint.root)) {
    throw new TransparencyError('not_included', 'the proof is of another entry than this one')
  }
  return { index: proof.index, checkpoint, ...checkWitnesses(note, policy, now) }
}

/**
 * Checks that enough of the policy's witnesses have cosigned a checkpoint, and recently.
 * @param now seconds since the epoch
 * @throws TransparencyError with the fault
 */
export function checkWitnesses(
  note: SignedNote,
  policy: LogPolicy,
  now: number,
): Pick<LoggedEntry, 'witnesses' | 'until'> {
  const cosigners = policy.witnesses
    .flatMap((witness) => {
      const seconds = cosignedAt(note, witness)
      return seconds === undefined ? [] : [{ name: witness.name, seconds }]
    })
    .toSorted((a, b) => b.seconds - a.seconds)
  if (cosigners.length < policy.quorum) {
    throw new TransparencyError(
      'too_few_witnesses',
      `${cosigners.length} of the known witnesses cosigned the checkpoint, ${policy.quorum} must`,
    )
  }
  if (cosigners.some(({ seconds }) => seconds > now + WITNESS_AHEAD_SECONDS)) {
    throw new TransparencyError(
      'checkpoint_in_future',
      'a witness cosigned the checkpoint in the future',
    )
  }
  // The cosignature that completes the quorum: at its time, enough witnesses had seen this tree.
  const needed = cosigners[policy.quorum - 1]
  const { maxAgeSeconds = Infinity } = policy
  const until = needed === undefined ? Infinity : needed.seconds + maxAgeSeconds
  if (needed !== undefined && now > until) {
    throw new TransparencyError(
      'stale_checkpoint',
      `the checkpoint was last cosigned ${now - needed.seconds} s ago, ${maxAgeSeconds} s are allowed`,
    )
  }
  return { witnesses: cosigners, until }
}

function malformed(cause?: unknown): TransparencyError {
  return new TransparencyError(
    'malformed_proof',
    'the log proof is not of the form tlog-proof@v1',
    { cause },
  )
}
