import type { Bytes } from '../../protocol/bytes.ts'
import type { OwnSignal } from '../calls/own-signal.ts'
import { createDigest } from '../stream/digest.ts'

/** A request body that is sent as a stream, without a second copy of its bytes. */
export interface StreamedBody {
  /** The bytes of the body, a stream of known length, so that it is sent with a Content-Length. */
  readonly readable: ReadableStream<Uint8Array>
  /** SHA-256 of the exact bytes, lowercase hex. Rejects unless all of them were read. */
  readonly digest: Promise<string>
}

/** Bytes handed over and hashed at a time. */
const SLICE_BYTES = 256 * 1024

/** Streams pieces one after the other until the signal aborts; `digest` then rejects with the abort's reason. */
export function streamPieces(pieces: readonly Bytes[], signal: OwnSignal): StreamedBody {
  const length = pieces.reduce((total, piece) => total + piece.length, 0)
  const { readable, writable } = new FixedLengthStream(length)
  const writer: WritableStreamDefaultWriter<Uint8Array> = writable.getWriter()
  const stop = () => void writer.abort(signal.reason).catch(ignoreEnded)
  if (signal.aborted) stop()
  else signal.onAbort(stop)
  const digest = send(pieces, writer)
  // If no one awaits the digest, the attempt has already failed for another reason.
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
  // Not awaited: a reader that knows the length need not read the end.
  void writer.close().catch(ignoreEnded)
  return digest.finish()
}

function ignoreEnded(): void {
  // The attempt itself reports why it ended.
}
