import type { Bytes } from '../../protocol/bytes.ts'
import { drain } from './drain.ts'
import { ApiError } from './errors.ts'

/** Room made for a body of undeclared length; it doubles as needed. */
const FIRST_BYTES = 65_536

/**
 * The whole body of a request, at most `maxBytes` of it, whether its length was declared or not. An absent body
 * is empty. What is not wanted is thrown away, so that its sender gets to read the refusal.
 * @throws ApiError what `tooLarge` makes; `invalid_request_error` for a compressed body or one that breaks off
 */
export async function readBody(
  request: Request,
  maxBytes: number,
  tooLarge: () => ApiError,
): Promise<Bytes> {
  const refusal = refusalByHeaders(request.headers, maxBytes, tooLarge)
  if (refusal) {
    await drain(request.body)
    throw refusal
  }
  if (request.body === null) return new Uint8Array()
  if (!request.headers.has('content-length')) {
    return collect(request.body, maxBytes, tooLarge)
  }
  // HTTP holds a body to its declared length. workerd takes a quarter of the time for it that a loop takes.
  const whole = new Uint8Array(await request.arrayBuffer().catch(brokeOff))
  if (whole.length > maxBytes) throw tooLarge()
  return whole
}

/**
 * Limits and digests are about the bytes that were sent, so a compressed body would need limits of its own;
 * no client of this format compresses.
 */
export function refusalByHeaders(
  headers: Headers,
  maxBytes: number,
  tooLarge: () => ApiError,
): ApiError | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') {
    return new ApiError('invalid_request_error', 'The request body must not be compressed.', {
      param: 'Content-Encoding',
    })
  }
  return Number(headers.get('content-length')) > maxBytes ? tooLarge() : undefined
}

async function collect(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  tooLarge: () => ApiError,
): Promise<Bytes> {
  const reader = body.getReader()
  let whole: Bytes = new Uint8Array(FIRST_BYTES)
  let length = 0
  for (;;) {
    const { done, value } = await reader.read().catch(brokeOff)
    if (done) return resized(whole, length)
    const end = length + value.length
    if (end > maxBytes) {
      reader.releaseLock()
      await drain(body)
      throw tooLarge()
    }
    if (end > whole.length) whole = resized(whole, Math.max(end, 2 * whole.length))
    whole.set(value, length)
    length = end
  }
}

/** Moves rather than copies where the platform can. */
function resized(bytes: Bytes, length: number): Bytes {
  return bytes.length === length ? bytes : new Uint8Array(bytes.buffer.transfer(length))
}

function brokeOff(): never {
  throw new ApiError('invalid_request_error', 'The request body broke off.')
}
