import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import { LinkError } from '../link-error.ts'
import { readBody } from '../read-body.ts'

/** Bodies up to this are collected, and sent with their head in one write: each write costs as much as its bytes. */
const SMALL_BYTES = 64 * 1024

/** A request's body on its way to the provider. */
export interface RequestBody {
  readonly bytes: Uint8Array | Readable | null
  /** What preceded it, for the daemon itself. */
  readonly ahead: Uint8Array
  /** Discards what is left of it, so that a refusal can be read on the same connection. */
  readonly discard: () => void
}

const noRest = () => {}

const NOTHING = new Uint8Array(0)

/**
 * The body of the worker's request: in one piece where it is small, else a stream that is read no faster than it is sent.
 * @param aheadBytes how many bytes precede it, for the daemon itself
 * @throws LinkError `invalid_request` when a small body breaks off, or what precedes it
 */
export async function bodyOf(request: IncomingMessage, aheadBytes = 0): Promise<RequestBody> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined && coding === undefined) {
    if (aheadBytes > 0) throw brokenOff()
    return { bytes: null, ahead: NOTHING, discard: noRest }
  }
  if (isSmall(length)) {
    const bytes = await readBody(request, SMALL_BYTES).catch((cause: unknown) => {
      throw brokenOff(cause)
    })
    if (bytes.length < aheadBytes) throw brokenOff()
    const ahead = bytes.subarray(0, aheadBytes)
    return { bytes: bytes.subarray(aheadBytes), ahead, discard: noRest }
  }
  const ahead = aheadBytes === 0 ? NOTHING : await readStart(request, aheadBytes)
  const bytes = request.pipe(new PassThrough())
  // Whether or not something reads it yet.
  bytes.on('error', () => {})
  request.once('error', (cause) => bytes.destroy(cause))
  const discard = () => {
    request.unpipe(bytes)
    request.resume()
  }
  return { bytes, ahead, discard }
}

/** The first bytes of a request, exactly so many. */
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

/** Whether a declared length is so short that the message is passed on at once. */
export function isSmall(length: string | undefined): boolean {
  return length !== undefined && Number(length) <= SMALL_BYTES
}
