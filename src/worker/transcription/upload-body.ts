import type { Bytes } from '../../protocol/bytes.ts'
import { releaseReader, refusalByHeaders } from '../http/body.ts'
import { BodyClock } from '../http/body-clock.ts'
import { ApiError } from '../http/errors.ts'

/** The most a file may have. */
export const FILE_BYTES = 25 * 1024 * 1024

/** A file of full size, and what a form has around it. */
const BODY_BYTES = FILE_BYTES + 1024 * 1024

/**
 * Time without a single byte, and time for the whole, after which an upload is given up. Between the two it must come
 * at the least rate of all bodies, counted from the bytes that have come and not from those that were declared: an
 * upload holds its whole room from the beginning.
 */
const STALL_MS = 20_000
const UPLOAD_MS = 300_000

export const tooLarge = () =>
  new ApiError('upload_too_large', 'The file is larger than 25 MiB.', { param: 'file' })

/**
 * What can be said of an upload before it is read: how many bytes to make room for, and one for the end.
 * @throws ApiError `invalid_content_type`, `upload_too_large`, `invalid_request_error` for a compressed body
 */
export function checkUploadHeaders(headers: Headers): { readonly room: number } {
  const refusal = contentTypeRefusal(headers) ?? refusalByHeaders(headers, BODY_BYTES, tooLarge)
  if (refusal) throw refusal
  const declared = headers.get('content-length')
  return { room: (declared === null ? BODY_BYTES : Number(declared)) + 1 }
}

/** Type and parameters of a media type (RFC 9110 section 8.3.1), as far as a form needs them. */
const FORM_TYPE = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:[^\s";]|"[^"])/i

function contentTypeRefusal(headers: Headers): ApiError | undefined {
  if (FORM_TYPE.test(headers.get('content-type')?.trim() ?? '')) return undefined
  return invalidContentType()
}

export function invalidContentType(): ApiError {
  const message = 'The body must be multipart/form-data, with its boundary in the Content-Type.'
  return new ApiError('invalid_content_type', message, { param: 'Content-Type' })
}

/**
 * The whole body of an upload, read into one buffer of `room` bytes and never copied.
 * @throws ApiError `upload_too_large`; `invalid_multipart` when it breaks off; `request_timeout` when it comes too slowly
 */
export async function readUpload(
  { body }: Pick<Request, 'body'>,
  room: number,
  now: () => number,
): Promise<Bytes> {
  if (body === null) return new Uint8Array()
  const reader = body.getReader({ mode: 'byob' })
  const latest = now() + UPLOAD_MS
  const clock = new BodyClock(now)
  let buffer = new ArrayBuffer(room)
  let length = 0
  try {
    while (length < room) {
      clock.allow(length, Math.min(latest, now() + STALL_MS))
      const view = new Uint8Array(buffer, length, room - length)
      const { value, done } = await clock.within(reader.read(view).catch(brokeOff))
      if (value !== undefined) buffer = ownBuffer(value)
      if (done) return new Uint8Array(buffer, 0, length)
      length += value.length
    }
    throw tooLarge()
  } finally {
    clock.stop()
    releaseReader(reader)
  }
}

/** Frees the memory of an upload at once; nothing may look at it any more. */
export function freeUpload(body: Bytes): void {
  body.buffer.transfer(0)
}

/** Each read hands the buffer over and brings it back. */
function ownBuffer(view: Uint8Array): ArrayBuffer {
  if (view.buffer instanceof ArrayBuffer) return view.buffer
  throw new Error('internal error: a read into shared memory')
}

function brokeOff(): never {
  throw new ApiError('invalid_multipart', 'The upload broke off.')
}
