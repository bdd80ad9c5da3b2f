import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import { LinkError } from '../link-error.ts'
import { readBody } from '../read-body.ts'

/** Bodies up to this are collected, and sent with their head in one write: each write costs as much as its bytes. */
const SMALL_BYTES = 64 * 1024

/** A request's body on its way to the provider. */
export interface RequestBody {
  readonly bytes: Uint8Array | Readable | null
  /** Discards what is left of it, so that a refusal can be read on the same connection. */
  readonly discard: () => void
}

const noRest = () => {}

/**
 * The body of the worker's request: in one piece where it is small, else a stream that is read no faster than it is sent.
 * @throws LinkError `invalid_request` when a small body breaks off
 */
export async function bodyOf(request: IncomingMessage): Promise<RequestBody> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined && coding === undefined) return { bytes: null, discard: noRest }
  if (isSmall(length)) {
    const bytes = await readBody(request, SMALL_BYTES).catch((cause: unknown) => {
      throw new LinkError('invalid_request', 'the request broke off', { cause })
    })
    return { bytes, discard: noRest }
  }
  const bytes = request.pipe(new PassThrough())
  // Whether or not something reads it yet.
  bytes.on('error', () => {})
  request.once('error', (cause) => bytes.destroy(cause))
  const discard = () => {
    request.unpipe(bytes)
    request.resume()
  }
  return { bytes, discard }
}

/** Whether a declared length is so short that the message is passed on at once. */
export function isSmall(length: string | undefined): boolean {
  return length !== undefined && Number(length) <= SMALL_BYTES
}
