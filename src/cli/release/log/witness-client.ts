import { toBase64, type Bytes } from '../../../protocol/bytes.ts'
import { cosignedAt } from '../../../verify/transparency/checkpoint.ts'
import {
  formatNote,
  parseSignatureLine,
  signaturesOf,
  type NoteKey,
  type NoteSignature,
} from '../../../verify/transparency/signed-note.ts'
import { ReleaseError } from '../release-error.ts'

/** A witness that cosigns checkpoints. */
export interface Witness {
  /** Its submission prefix. */
  readonly url: string
  readonly key: NoteKey
}

/** A signed tree head that a witness is to cosign, and how to prove that it continues an earlier one. */
export interface Submission {
  readonly text: string
  readonly signature: NoteSignature
  readonly size: number
  consistency(older: number): Promise<readonly Bytes[]>
}

const RESPONSE_TIMEOUT_MS = 20_000
const MAX_ANSWER_CHARS = 16_384

/** What c2sp.org/tlog-witness has a witness say by these statuses. */
const REFUSALS: Readonly<Record<number, string>> = {
  403: ': it knows this log by another key',
  404: ': it does not watch this log',
  422: ': this tree does not continue the one that it cosigned last',
}

/**
 * Requests a witness's cosignature (c2sp.org/tlog-witness), stating the tree size that the witness is expected to know.
 * Retries once if the witness answers that it knows another size.
 * @throws ReleaseError when the witness does not cosign; the message names the witness and its answer
 */
export async function requestCosignature(
  { url, key }: Witness,
  submission: Submission,
  expectedSize: number,
): Promise<NoteSignature> {
  let answer = await post(url, key, await requestBody(submission, expectedSize))
  if (answer.status === 409) {
    const known = Number(/^(\d{1,16})\n?$/.exec(answer.text)?.[1] ?? Number.NaN)
    if (!(known <= submission.size)) {
      throw new ReleaseError(
        `the witness ${key.name} knows a longer tree of this log than this one`,
      )
    }
    answer = await post(url, key, await requestBody(submission, known))
  }
  if (answer.status !== 200) {
    const meaning = REFUSALS[answer.status]
    throw new ReleaseError(
      `the witness ${key.name} refuses the checkpoint with status ${answer.status}${meaning ?? ''}`,
    )
  }
  return ownSignature(answer.text, key, submission)
}

async function requestBody(submission: Submission, older: number): Promise<string> {
  const { text, signature } = submission
  const proof = await submission.consistency(older)
  const lines = [`old ${older}`, ...proof.map(toBase64), '']
  return `${lines.join('\n')}\n${formatNote({ text, signatures: [signature] })}`
}

async function post(
  url: string,
  key: NoteKey,
  body: string,
): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(`${url.replace(/\/$/, '')}/add-checkpoint`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    })
    return { status: response.status, text: (await response.text()).slice(0, MAX_ANSWER_CHARS) }
  } catch (cause) {
    throw new ReleaseError(`the witness ${key.name} cannot be reached`, { cause })
  }
}

/** The witness's own signature among those in its answer, verified. */
function ownSignature(answer: string, key: NoteKey, { text }: Submission): NoteSignature {
  const lines = answer.split('\n').filter((line) => line !== '')
  const note = { text, signatures: lines.map(parseSignatureLine) }
  const [own] = signaturesOf(note, key)
  if (own === undefined || cosignedAt({ text, signatures: [own] }, key) === undefined) {
    throw new ReleaseError(`the witness ${key.name} sent no cosignature of its own`)
  }
  return own
}
