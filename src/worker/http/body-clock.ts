import { ApiError } from './errors.ts'

/** Time that every body has, ms, and the minimum rate at which it must arrive after that. */
const GRACE_MS = 10_000
const MIN_BYTES_PER_MS = 32

/**
 * The time limit of a request body: ten seconds, plus one for every 32 KB of the body. Without it a slow client could
 * keep the memory and the permit of its request for as long as it likes.
 */
export class BodyClock {
  readonly #late = Promise.withResolvers<never>()
  readonly #now: () => number
  readonly #begunAt: number
  #cancel: () => void = () => {}

  constructor(now: () => number) {
    this.#now = now
    this.#begunAt = now()
    this.#late.promise.catch(ignoreTimeout)
  }

  /** Sets the time limit for a body of `bytes` bytes in all, but not later than `latest` (ms, Unix time). */
  allow(bytes: number, latest = Number.POSITIVE_INFINITY): void {
    this.#cancel()
    const endsAt = Math.min(latest, this.#begunAt + GRACE_MS + bytes / MIN_BYTES_PER_MS)
    const message = 'The request body came too slowly.'
    const giveUp = () => this.#late.reject(new ApiError('request_timeout', message))
    const timer = setTimeout(giveUp, Math.max(0, endsAt - this.#now()))
    this.#cancel = () => clearTimeout(timer)
  }

  /**
   * The result of `reading`.
   * @throws ApiError `request_timeout` when the time limit passes first
   */
  within<T>(reading: Promise<T>): Promise<T> {
    return Promise.race([reading, this.#late.promise])
  }

  stop(): void {
    this.#cancel()
  }
}

function ignoreTimeout(): void {
  // `within` reports the timeout; without this handler the promise would be an unhandled rejection.
}
