import { keepShape } from '../../protocol/keep-shape.ts'
import { after, type After, type DeadlineTimer } from '../batching/deadline-timer.ts'
import { ApiError } from './errors.ts'

/** The time that every body has, ms, and the minimum rate at which it must arrive after that, bytes per ms. */
const GRACE_MS = 10_000
const MIN_BYTES_PER_MS = 32

/**
 * Interval between two readings of the clock, ms. A longer gap counts as this much: in the rest of it the program was not
 * running, so the client's bytes may have been waiting already.
 */
const TICK_MS = 1_000

export interface BodyTimes {
  /** Time limit of one read, ms. */
  readonly stallMs?: number
  /** Time limit of all reads together, ms. */
  readonly totalMs?: number
}

/**
 * The time limit of a request body: ten seconds, plus one for every 32 KB of the body. Without it a slow client could keep
 * its request's memory and permit for as long as it likes. Only time spent waiting for the client's bytes counts: neither
 * the time between two reads, nor the time in which this program does not run because the machine is short of CPU.
 */
export class BodyClock {
  readonly #now: () => number
  readonly #stallMs: number
  readonly #totalMs: number
  readonly #after: After
  /** The time spent waiting for the client so far, ms. */
  #waitedMs = 0

  /**
   * @param now ms since the epoch
   * @param callAfter measures the times
   */
  constructor(now: () => number, times: BodyTimes = {}, callAfter: After = after) {
    this.#now = now
    this.#after = callAfter
    this.#stallMs = times.stallMs ?? Number.POSITIVE_INFINITY
    this.#totalMs = times.totalMs ?? Number.POSITIVE_INFINITY
  }

  static {
    keepShape(new BodyClock(() => 0))
  }

  /**
   * Awaits a read of the client's bytes.
   * @param bytes the size from which the time limit is computed: of what has arrived so far, or of the whole body
   * @throws ApiError `request_timeout` when the time limit passes first
   */
  async within<T>(reading: Promise<T>, bytes: number): Promise<T> {
    const endsAt = Math.min(this.#totalMs, GRACE_MS + bytes / MIN_BYTES_PER_MS)
    const until = Math.min(endsAt, this.#waitedMs + this.#stallMs)
    const { promise: timedOut, reject } = Promise.withResolvers<never>()
    let timer: DeadlineTimer
    let seenAt = this.#now()
    const count = () => {
      const at = this.#now()
      this.#waitedMs += Math.max(0, Math.min(at - seenAt, TICK_MS))
      seenAt = at
    }
    const look = () => {
      count()
      if (this.#waitedMs >= until) reject(tooSlow())
      else timer = this.#after(Math.min(TICK_MS, until - this.#waitedMs), look)
    }
    timer = this.#after(Math.max(0, Math.min(TICK_MS, until - this.#waitedMs)), look)
    try {
      return await Promise.race([reading, timedOut])
    } finally {
      timer.stop()
      count()
    }
  }
}

function tooSlow(): ApiError {
  return new ApiError('request_timeout', 'The request body came too slowly.')
}
