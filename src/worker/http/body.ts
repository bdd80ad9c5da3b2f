import type { Bytes } from '../../protocol/bytes.ts'
import type { After } from '../batching/deadline-timer.ts'
import { BodyClock } from './body-clock.ts'
import { declaredLength } from './declared-length.ts'
import { ApiError } from './errors.ts'

/** Initial buffer for a body of undeclared length, in bytes; it doubles as needed. */
const FIRST_BYTES = 65_536

/**
 * A body of longer declared length is read piece by piece, so that its time limit depends on what has arrived so far,
 * because its memory is reserved from the start. A shorter body has half a minute at most.
 */
const AT_ONCE_BYTES = 512 * 1024

export interface BodyLimits {
  readonly maxBytes: number
  readonly tooLarge: () => ApiError
  /** Ms. */
  readonly now: () => number
  /** Measures times with the other timers of the request. */
  readonly after?: After
  /** Called with a number of bytes before they are allocated; throws when they are not available. */
  readonly takeMemory?: (bytes: number) => void
}

/**
 * Reads the whole body of a request, whether its length was declared or not. An absent body is empty.
 * @throws ApiError made by `tooLarge` when the body is too large; `invalid_request_error` when it is compressed or
 *   incomplete; `request_timeout` when it arrives too slowly; the error of `takeMemory` when there is no memory
 */
export async function readBody(request: Request, limits: BodyLimits): Promise<Bytes> {
  const { maxBytes, tooLarge, now, after, takeMemory } = limits
  const refusal = refusalByHeaders(request.headers, maxBytes, tooLarge)
  if (refusal) throw refusal
  const declared = declaredLength(request.headers)
  const clock = new BodyClock(now, {}, after)
  if (declared === undefined) {
    return request.body === null ? new Uint8Array() : collect(request.body, limits, clock)
  }
  takeMemory?.(declared)
  if (declared > AT_ONCE_BYTES && request.body !== null) {
    return readInto(request.body, declared + 1, { clock, tooLarge, brokenOff: bodyAborted })
  }
  // HTTP enforces the declared length. In workerd `arrayBuffer` takes a quarter of the time of a read loop.
  const reading = request.arrayBuffer().catch(bodyAborted)
  const whole = new Uint8Array(await clock.within(reading, declared))
  if (whole.length > maxBytes) throw tooLarge()
  return whole
}

/**
 * Checks the headers for a compressed body or a declared length over the limit. Limits and digests apply to the bytes
 * as sent, so compressed bodies would need limits of their own, and no client of this format compresses.
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
  return (declaredLength(headers) ?? 0) > maxBytes ? tooLarge() : undefined
}

interface IntoRules extends Pick<BodyLimits, 'tooLarge'> {
  readonly clock: BodyClock
  readonly brokenOff: () => never
}

/**
 * Reads the whole body into one buffer, without copying.
 * @param room the body's maximum length plus one byte, in which a longer body shows
 * @throws ApiError made by `tooLarge` when it is longer; that of `brokenOff`; `request_timeout` when it arrives too slowly
 */
export async function readInto(
  body: ReadableStream<Uint8Array>,
  room: number,
  { clock, tooLarge, brokenOff }: IntoRules,
): Promise<Bytes> {
  const reader = body.getReader({ mode: 'byob' })
  let buffer = new ArrayBuffer(room)
  let length = 0
  try {
    while (length < room) {
      const view = new Uint8Array(buffer, length, room - length)
      const { value, done } = await clock.within(reader.read(view).catch(brokenOff), length)
      if (value !== undefined) buffer = ownBuffer(value)
      if (done) return new Uint8Array(buffer, 0, length)
      length += value.length
    }
    throw tooLarge()
  } finally {
    releaseReader(reader)
  }
}

/** The buffer behind a view. Each read transfers the buffer to the stream, which returns it with the bytes. */
function ownBuffer(view: Uint8Array): ArrayBuffer {
  if (view.buffer instanceof ArrayBuffer) return view.buffer
  throw new Error('internal error: a read into shared memory')
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
      const { done, value } = await clock.within(reader.read().catch(bodyAborted), length)
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
    releaseReader(reader)
  }
}

/**
 * Releases the reader's lock, so that the rest of the body can be drained. workerd throws when a read is still
 * pending; that error is ignored, because it would hide the one that the client must see.
 */
export function releaseReader(reader: Pick<ReadableStreamDefaultReader, 'releaseLock'>): void {
  try {
    reader.releaseLock()
  } catch {
    // The body stays locked and is not drained; the connection is closed after the answer.
  }
}

/** Resizes without copying where the platform can. */
function resized(bytes: Bytes, length: number): Bytes {
  return bytes.length === length ? bytes : new Uint8Array(bytes.buffer.transfer(length))
}

function bodyAborted(): never {
  throw new ApiError('invalid_request_error', 'The request body broke off.')
}
