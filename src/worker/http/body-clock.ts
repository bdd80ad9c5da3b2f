import { ApiError } from './errors.ts'

/** What any body may take, ms, and the least rate at which the rest of it must come. */
const GRACE_MS = 10_000
const LEAST_BYTES_PER_MS = 32

/**
 * The time that a body has: ten seconds, and one more for every 32 KB of it. Who sends more slowly would hold what is
 * kept for the request for as long as they like.
 */
export class BodyClock {
  readonly #late = Promise.withResolvers<never>()
  readonly #now: () => number
  readonly #begunAt: number
  #cancel: () => void = () => {}

  constructor(now: () => number) {
    this.#now = now
    this.#begunAt = now()
    this.#late.promise.catch(ignoreLate)
  }

  /** Gives the body time for so many bytes in all, and ends it at `latest` at the latest. */
  allow(bytes: number, latest = Number.POSITIVE_INFINITY): void {
    this.#cancel()
    const endsAt = Math.min(latest, this.#begunAt + GRACE_MS + bytes / LEAST_BYTES_PER_MS)
    const message = 'The request body came too slowly.'
    const giveUp = () => this.#late.reject(new ApiError('request_timeout', message))
    const timer = setTimeout(giveUp, Math.max(0, endsAt - this.#now()))
    this.#cancel = () => clearTimeout(timer)
  }

  /** The outcome of some reading, unless time is up first. @throws ApiError `request_timeout` */
  within<T>(reading: Promise<T>): Promise<T> {
    return Promise.race([reading, this.#late.promise])
  }

  stop(): void {
    this.#cancel()
  }
}

function ignoreLate(): void {
  // Whoever reads is told.
}
