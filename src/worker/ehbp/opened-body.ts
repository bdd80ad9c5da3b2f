import type { RecipientContext } from 'hpke'
import type { Bytes } from '../../protocol/bytes.ts'
import { TAG_BYTES } from '../../protocol/ehbp.ts'
import { FrameReader } from '../../protocol/ehbp-frames.ts'

/** Maximum number of frames: decrypting a body in very small frames would cost too much CPU. */
const MAX_FRAMES = 16_384

/** Why an encrypted body is refused. */
export type BodyFault =
  /** No current key decrypts its first frame: it was encrypted to another key, or altered in transit. */
  | 'wrong_key'
  /** It does not consist of frames, has too many, or a later frame does not decrypt. */
  | 'malformed'

export type OpenedBody =
  | { readonly ok: true; readonly plain: Bytes; readonly recipient: RecipientContext }
  | {
      readonly ok: false
      readonly fault: BodyFault
      /** The context that decrypted the first frame. */
      readonly recipient?: RecipientContext
    }

/**
 * Decrypts a whole body with the first context that fits. A body without frames is malformed: an attacker may have removed
 * them.
 */
export async function openBody(
  encrypted: Bytes,
  recipients: readonly RecipientContext[],
): Promise<OpenedBody> {
  const frames = readFrames(encrypted)
  const [first, ...later] = frames ?? []
  if (first === undefined) return { ok: false, fault: 'malformed' }
  const opened = await openFirst(first, recipients)
  if (opened === undefined) return { ok: false, fault: 'wrong_key' }
  const { recipient, plain: head } = opened
  if (later.length === 0) return { ok: true, plain: head, recipient }
  const sizes = later.map((frame) => Math.max(0, frame.length - TAG_BYTES))
  const plain = new Uint8Array(sizes.reduce((sum, size) => sum + size, head.length))
  plain.set(head)
  let length = head.length
  for (const frame of later) {
    // One after the other, because a frame's number is part of its decryption.
    const part = await tryOpen(frame, recipient)
    if (part === undefined) return { ok: false, fault: 'malformed', recipient }
    plain.set(part, length)
    length += part.length
  }
  return { ok: true, plain, recipient }
}

function readFrames(encrypted: Bytes): readonly Uint8Array[] | undefined {
  const reader = new FrameReader(encrypted.length)
  try {
    const frames: Uint8Array[] = []
    for (const frame of reader.push(encrypted)) {
      frames.push(frame)
      if (frames.length > MAX_FRAMES) return undefined
    }
    reader.end()
    return frames
  } catch {
    return undefined
  }
}

async function openFirst(frame: Uint8Array, recipients: readonly RecipientContext[]) {
  for (const recipient of recipients) {
    // Tried in order; the newest key nearly always fits.
    const plain = await tryOpen(frame, recipient)
    if (plain !== undefined) return { recipient, plain }
  }
  return undefined
}

async function tryOpen(frame: Uint8Array, recipient: RecipientContext): Promise<Bytes | undefined> {
  try {
    const plain = await recipient.Open(frame)
    return new Uint8Array(plain.buffer instanceof ArrayBuffer ? plain.buffer : plain)
  } catch {
    return undefined
  }
}
