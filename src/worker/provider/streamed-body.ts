import type { Bytes } from '../../protocol/bytes.ts'
import { createDigest } from '../stream/digest.ts'

/** A request body on its way: a second copy of its bytes is never made. */
export interface StreamedBody {
  /** Of known length, so that it is sent with a Content-Length. */
  readonly readable: ReadableStream<Uint8Array>
  /** SHA-256 of the exact bytes, lowercase hex. Rejects unless they were all taken. */
  readonly digest: Promise<string>
}

/** How much is handed over, and hashed, at a time. */
const SLICE_BYTES = 256 * 1024

/** Sends pieces one behind the other until the signal aborts, whose reason `digest` then rejects with. */
export function streamPieces(pieces: readonly Bytes[], signal: AbortSignal): StreamedBody {
  const length = pieces.reduce((total, piece) => total + piece.length, 0)
  const { readable, writable } = new FixedLengthStream(length)
  const writer: WritableStreamDefaultWriter<Uint8Array> = writable.getWriter()
  const stop = () => void writer.abort(signal.reason).catch(ignoreEnded)
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  const digest = send(pieces, writer)
  // Whoever never asks for it has lost the attempt to another fault already.
  digest.catch(ignoreEnded)
  return { readable, digest }
}

async function send(
  pieces: readonly Bytes[],
  writer: WritableStreamDefaultWriter<Uint8Array>,
): Promise<string> {
  const digest = createDigest()
  for (const piece of pieces) {
    for (let start = 0; start < piece.length; start += SLICE_BYTES) {
      const slice = piece.subarray(start, start + SLICE_BYTES)
      digest.update(slice)
      await writer.write(slice)
    }
  }
  // Not awaited: a reader that knows the length need not come back for the end.
  void writer.close().catch(ignoreEnded)
  return digest.finish()
}

function ignoreEnded(): void {
  // What ended the attempt is told by the attempt.
}
