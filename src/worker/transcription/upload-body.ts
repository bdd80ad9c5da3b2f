import type { Bytes } from '../../protocol/bytes.ts'
import type { After } from '../batching/deadline-timer.ts'
import { readInto, refusalByHeaders } from '../http/body.ts'
import { BodyClock, type BodyTimes } from '../http/body-clock.ts'
import { declaredLength } from '../http/declared-length.ts'
import { ApiError } from '../http/errors.ts'

/** Maximum size of a file, bytes. */
export const FILE_BYTES = 25 * 1024 * 1024

/** Maximum size of a form: a file of maximum size and the other parts, bytes. */
const BODY_BYTES = FILE_BYTES + 1024 * 1024

/**
 * An upload is aborted after waiting this long for one read, and after waiting this long in all. In between it must keep the
 * minimum rate of all bodies. The rate counts received bytes, not declared ones, because an upload holds the memory for all
 * declared bytes from the start.
 */
const UPLOAD_TIMES: BodyTimes = { stallMs: 20_000, totalMs: 300_000 }

export const tooLarge = () =>
  new ApiError('upload_too_large', 'The file is larger than 25 MiB.', { param: 'file' })

/**
 * Checks the headers of an upload.
 * @returns the buffer size that it needs: its maximum length plus one byte, in which a longer body shows
 * @throws ApiError `invalid_content_type`, `upload_too_large`, `invalid_request_error` for a compressed body
 */
export function checkUploadHeaders(headers: Headers): { readonly room: number } {
  const refusal = contentTypeRefusal(headers) ?? refusalByHeaders(headers, BODY_BYTES, tooLarge)
  if (refusal) throw refusal
  return { room: (declaredLength(headers) ?? BODY_BYTES) + 1 }
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
 * Reads the whole body of an upload into one buffer of `room` bytes, without copying.
 * @throws ApiError `upload_too_large`; `invalid_multipart` when it is incomplete; `request_timeout` when it is too slow
 */
export async function readUpload(
  { body }: Pick<Request, 'body'>,
  room: number,
  { now, after }: { readonly now: () => number; readonly after?: After },
): Promise<Bytes> {
  if (body === null) return new Uint8Array()
  const clock = new BodyClock(now, UPLOAD_TIMES, after)
  return readInto(body, room, { clock, tooLarge, brokenOff: bodyAborted })
}

/** Frees the memory of an upload at once. Its views must not be used afterwards. */
export function freeUpload(body: Bytes): void {
  body.buffer.transfer(0)
}

function bodyAborted(): never {
  throw new ApiError('invalid_multipart', 'The upload broke off.')
}
