import { concatBytes, fromBase64, toBase64, utf8, type Bytes } from '../../protocol/bytes.ts'
import { HASH_BYTES, type TreeHead } from './merkle.ts'
import { isSignedBy, signaturesOf, type NoteKey, type SignedNote } from './signed-note.ts'
import { TransparencyError } from './transparency-error.ts'

/** The content of a log's checkpoint (c2sp.org/tlog-checkpoint). */
export interface Checkpoint extends TreeHead {
  /** The log's unique name. */
  readonly origin: string
}

const SIZE = /^(0|[1-9]\d{0,15})$/

/**
 * Parses the text of a checkpoint. Extension lines are refused: this log writes none, and cosignatures of witnesses
 * make no statement about them.
 * @throws TransparencyError `malformed_checkpoint`
 */
export function parseCheckpoint(text: string): Checkpoint {
  const [origin = '', size = '', root = '', end, ...rest] = text.split('\n')
  if (origin === '' || !SIZE.test(size) || end !== '' || rest.length > 0) throw malformed()
  return { origin, size: Number(size), root: decodeHash(root) }
}

export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${toBase64(root)}\n`
}

/**
 * Checks that the log itself signed this checkpoint.
 * @throws TransparencyError when no signature is by this key (`unknown_log`) or that signature is wrong
 *   (`bad_log_signature`)
 */
export function checkLogSignature(note: SignedNote, logKey: NoteKey): void {
  const own = signaturesOf(note, logKey)
  if (own.length === 0) {
    throw new TransparencyError('unknown_log', `the checkpoint is not signed by ${logKey.name}`)
  }
  const message = utf8(note.text)
  if (!own.every(({ signature }) => isSignedBy(logKey, signature, message))) {
    throw new TransparencyError(
      'bad_log_signature',
      `the signature of ${logKey.name} is not of this checkpoint`,
    )
  }
}

const TIMESTAMP_BYTES = 8

/** The bytes that a witness signs at a time in seconds since the epoch (c2sp.org/tlog-cosignature, Ed25519). */
export function cosignedMessage(text: string, seconds: number): Bytes {
  return utf8(`cosignature/v1\ntime ${seconds}\n${text}`)
}

/** Encodes a cosignature for a note: the time, and the signature over time and checkpoint. */
export function encodeCosignature(seconds: number, signature: Bytes): Bytes {
  const timestamp = new Uint8Array(TIMESTAMP_BYTES)
  new DataView(timestamp.buffer).setBigUint64(0, BigInt(seconds))
  return concatBytes(timestamp, signature)
}

/**
 * When a witness cosigned this checkpoint, in seconds since the epoch; undefined where it did not.
 * @throws TransparencyError when a signature under its name and id is wrong: `bad_cosignature`
 */
export function cosignedAt(note: SignedNote, witness: NoteKey): number | undefined {
  const times = signaturesOf(note, witness).map(({ signature }) => {
    const time = new DataView(signature.buffer, signature.byteOffset, signature.length)
    const seconds = signature.length > TIMESTAMP_BYTES ? Number(time.getBigUint64(0)) : 0
    const message = cosignedMessage(note.text, seconds)
    const rest = signature.slice(TIMESTAMP_BYTES)
    if (seconds === 0 || !Number.isSafeInteger(seconds) || !isSignedBy(witness, rest, message)) {
      throw new TransparencyError(
        'bad_cosignature',
        `the cosignature of ${witness.name} is not of this checkpoint`,
      )
    }
    return seconds
  })
  return times.length === 0 ? undefined : Math.max(...times)
}

/** Decodes one hash from base64. */
export function decodeHash(text: string): Bytes {
  let hash: Bytes
  try {
    hash = fromBase64(text)
  } catch {
    throw malformed()
  }
  if (hash.length !== HASH_BYTES || toBase64(hash) !== text) throw malformed()
  return hash
}

function malformed(): TransparencyError {
  return new TransparencyError(
    'malformed_checkpoint',
    'the checkpoint has no origin, size and root of the expected form',
  )
}
