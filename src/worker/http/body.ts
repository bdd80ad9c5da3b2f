import type { Bytes } from '../../protocol/bytes.ts'
import { BodyClock } from './body-clock.ts'
import { ApiError } from './errors.ts'

/** Room made for a body of undeclared length; it doubles as needed. */
const FIRST_BYTES = 65_536

export interface BodyLimits {
  readonly maxBytes: number
  readonly tooLarge: () => ApiError
  /** Ms. */
  readonly now: () => number
  /** Asked for memory before it is taken; throws when there is none. */
  readonly takeMemory?: (bytes: number) => void
}

/**
 * The whole body of a request, whether its length was declared or not. An absent body is empty.
 * @throws ApiError what `tooLarge` makes; `invalid_request_error` for a compressed body or one that breaks off;
 * `request_timeout` for one that comes too slowly; what `takeMemory` throws
 */
export async function readBody(request: Request, limits: BodyLimits): Promise<Bytes> {
  const { maxBytes, tooLarge, now, takeMemory } = limits
  const refusal = refusalByHeaders(request.headers, maxBytes, tooLarge)
  if (refusal) throw refusal
  if (request.body === null) return new Uint8Array()
  const declared = request.headers.get('content-length')
  const clock = new BodyClock(now)
  try {
    if (declared === null) return await collect(request.body, limits, clock)
    takeMemory?.(Number(declared))
    clock.allow(Number(declared))
    // HTTP holds a body to its declared length. workerd takes a quarter of the time for it that a loop takes.
    const whole = new Uint8Array(await clock.within(request.arrayBuffer().catch(brokeOff)))
    if (whole.length > maxBytes) throw tooLarge()
    return whole
  } finally {
    clock.stop()
  }
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
  { maxBytes, tooLarge, takeMemory }: BodyLimits,
  clock: BodyClock,
): Promise<Bytes> {
  const reader = body.getReader()
  takeMemory?.(FIRST_BYTES)
  let whole: Bytes = new Uint8Array(FIRST_BYTES)
  let length = 0
  try {
    for (;;) {
      clock.allow(length)
      const { done, value } = await clock.within(reader.read().catch(brokeOff))
      if (done) return resized(whole, length)
      const end = length + value.length
      if (end > maxBytes) throw tooLarge()
      if (end > whole.length) {
        const room = Math.max(end, 2 * whole.length)
        takeMemory?.(room - whole.length)
        whole = resized(whole, room)
      }
      whole.set(value, length)
      length = end
    }
  } finally {
    letGo(reader)
  }
}

/**
 * Gives a body back, so that what is left of it can be drained. A reader that still waits for bytes keeps it: workerd
 * throws then, and what is wrong with the body is what its sender must be told.
 */
export function letGo(reader: Pick<ReadableStreamDefaultReader, 'releaseLock'>): void {
  try {
    reader.releaseLock()
  } catch {
    // The connection is closed behind the answer.
  }
}

/** Moves rather than copies where the platform can. */
function resized(bytes: Bytes, length: number): Bytes {
  return bytes.length === length ? bytes : new Uint8Array(bytes.buffer.transfer(length))
}

function brokeOff(): never {
  throw new ApiError('invalid_request_error', 'The request body broke off.')
}
