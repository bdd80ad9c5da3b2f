import { encodeFrame } from '../../protocol/ehbp-frames.ts'
import type { AnswerCipher } from '../../protocol/ehbp-answer.ts'
import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { JoinedChunks } from './joined-chunks.ts'

/** Maximum plain bytes of one frame: its reader must buffer a whole frame before it can authenticate any of it. */
const MAX_FRAME_BYTES = 65_536

/**
 * Encrypts the body frame by frame as it arrives. The last frame is empty: the protocol has no end marker, so an answer that
 * was cut off between two frames would otherwise look complete. Clients that do not know this ignore an empty frame.
 */
export function sealedBody(
  body: ReadableStream<Uint8Array> | null,
  cipher: AnswerCipher,
): ReadableStream<Uint8Array> {
  const chunks = body === null ? undefined : new JoinedChunks(body)
  const source = {
    pull: async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const plain = await chunks?.take()
      controller.enqueue(await sealFrames(plain ?? new Uint8Array(), cipher))
      if (plain === undefined) controller.close()
    },
    cancel: (reason: unknown) => chunks?.cancel(reason),
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

/** Encrypts bytes as one frame, or as many as they need. */
async function sealFrames(plain: Bytes, cipher: AnswerCipher): Promise<Bytes> {
  const frames: Bytes[] = []
  let from = 0
  do {
    // One after the other, because frames are numbered in order.
    const sealed = await cipher.seal(plain.slice(from, from + MAX_FRAME_BYTES))
    frames.push(encodeFrame(sealed))
    from += MAX_FRAME_BYTES
  } while (from < plain.length)
  return frames.length === 1 && frames[0] !== undefined ? frames[0] : concatBytes(...frames)
}
