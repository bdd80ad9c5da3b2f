import { SWEEP_AFTER_WRITE_MS, SWEEP_PAUSE_MS, type Sweep } from '../worker/storage/database.ts'

/** The longest wait, ms. A timer of Node overflows after 24 days; a round that comes early does no harm. */
const MAX_WAIT_MS = 3_600_000

/** Runs rounds of maintenance: soon after the start, within a minute after a write, and when a round asks for the next. */
export class SweepTimer {
  readonly #round: () => ReturnType<Sweep>
  readonly #now: () => number
  readonly #afterWriteMs: number
  #timer: NodeJS.Timeout | undefined
  /** When the timer goes off; infinity while none is set. */
  #at = Number.POSITIVE_INFINITY

  /**
   * @param round one round; when it throws, the next one is scheduled as after a write
   * @param now ms since the epoch
   */
  constructor(
    round: () => ReturnType<Sweep>,
    now: () => number,
    afterWriteMs = SWEEP_AFTER_WRITE_MS,
  ) {
    this.#round = round
    this.#now = now
    this.#afterWriteMs = afterWriteMs
  }

  /** Schedules the first round: the previous process may have left work. */
  begin(): void {
    this.#schedule(this.#now() + SWEEP_PAUSE_MS)
  }

  written(): void {
    this.#schedule(this.#now() + this.#afterWriteMs)
  }

  /** Runs no further round. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#at = Number.NEGATIVE_INFINITY
  }

  #schedule(at: number): void {
    if (this.#at <= at) return
    clearTimeout(this.#timer)
    this.#at = at
    const wait = Math.min(Math.max(at - this.#now(), 0), MAX_WAIT_MS)
    this.#timer = setTimeout(() => void this.#run(), wait)
  }

  async #run(): Promise<void> {
    this.#at = Number.POSITIVE_INFINITY
    try {
      const { next } = await this.#round()
      if (next !== undefined) this.#schedule(Math.max(next, this.#now() + SWEEP_PAUSE_MS))
    } catch {
      this.written()
    }
  }
}
