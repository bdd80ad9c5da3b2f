import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import { LinkError } from '../link-error.ts'
import { readBody } from '../read-body.ts'

/**
 * Bodies up to this size are collected and sent together with their head, since each extra write costs as much as a
 * small body itself.
 */
const SMALL_BYTES = 64 * 1024

/** A request's body on its way to the provider. */
export interface RequestBody {
  readonly bytes: Uint8Array | Readable | null
  /** The bytes that preceded it; they are for the daemon itself. */
  readonly preamble: Uint8Array
  /** Discards the unread rest of the body, so that the worker can read a refusal on the same connection. */
  readonly discard: () => void
}

const noRest = () => {}

const NOTHING = new Uint8Array(0)

/**
 * Reads the body of the worker's request: as one buffer where it is small, else as a stream with back-pressure.
 * @param preambleBytes how many bytes precede it, for the daemon itself
 * @throws LinkError `invalid_request` when the preceding bytes or a small body break off
 */
export async function bodyOf(request: IncomingMessage, preambleBytes = 0): Promise<RequestBody> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined && coding === undefined) {
    if (preambleBytes > 0) throw brokenOff()
    return { bytes: null, preamble: NOTHING, discard: noRest }
  }
  if (isSmall(length)) {
    const bytes = await readBody(request, SMALL_BYTES).catch((cause: unknown) => {
      throw brokenOff(cause)
    })
    if (bytes.length < preambleBytes) throw brokenOff()
    const preamble = bytes.subarray(0, preambleBytes)
    return { bytes: bytes.subarray(preambleBytes), preamble, discard: noRest }
  }
  const preamble = preambleBytes === 0 ? NOTHING : await readStart(request, preambleBytes)
  const bytes = request.pipe(new PassThrough())
  // The body may break off before anything reads it; without a listener the error would end the process.
  bytes.on('error', () => {})
  request.once('error', (cause) => bytes.destroy(cause))
  const discard = () => {
    request.unpipe(bytes)
    request.resume()
  }
  return { bytes, preamble, discard }
}

/** Reads exactly `length` bytes from the start of a request. */
function readStart(request: IncomingMessage, length: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const onReadable = () => {
      const start: unknown = request.read(length)
      if (!(start instanceof Uint8Array)) return
      leave()
      if (start.length === length) resolve(start)
      else reject(brokenOff())
    }
    const onEnd = () => {
      leave()
      reject(brokenOff())
    }
    const leave = () => request.off('readable', onReadable).off('end', onEnd).off('close', onEnd)
    request.on('readable', onReadable).on('end', onEnd).on('close', onEnd)
  })
}

function brokenOff(cause?: unknown): LinkError {
  return new LinkError('invalid_request', 'the request broke off', { cause })
}

/** Whether a declared length is so small that the message is passed on in one write. */
export function isSmall(length: string | undefined): boolean {
  return length !== undefined && Number(length) <= SMALL_BYTES
}
