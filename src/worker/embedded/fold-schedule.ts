/** How long settlements and reservations may stay out of the tables, ms. */
const FOLD_AFTER_MS = 1_000

/**
 * Default number of settlements after which a fold runs at once. All other work waits while a fold runs, about a tenth of a
 * millisecond per settlement.
 */
const MANY_BILLS = 256

export interface FoldScheduleDeps {
  /** Runs work after a time in ms. */
  readonly later: (ms: number, work: () => Promise<void>) => void
  /** Rejects where the fold failed. */
  readonly fold: () => Promise<void>
  /** Number of settlements after which a fold runs at once; default: `MANY_BILLS`. */
  readonly foldAt?: number | undefined
}

/** Schedules the folds of a ledger: one second after there is something to fold, or at once when many settlements wait. */
export class FoldSchedule {
  readonly #deps: FoldScheduleDeps
  /** Identifies the scheduled fold; undefined: none is scheduled. */
  #due: symbol | undefined
  /** Whether an early fold was scheduled and has not succeeded yet. */
  #isEarly = false

  constructor(deps: FoldScheduleDeps) {
    this.#deps = deps
  }

  /** Whether a fold will run within a second. */
  get isDue(): boolean {
    return this.#due !== undefined
  }

  /**
   * Makes sure that a fold is scheduled.
   * @param waitingBills how many settlements it would write
   */
  arrange(waitingBills: number): void {
    if (!this.isDue) this.#foldInASecond()
    const { foldAt = MANY_BILLS } = this.#deps
    if (this.#isEarly || waitingBills < foldAt) return
    this.#isEarly = true
    // After the answers to the current calls have been sent.
    this.#deps.later(0, () => this.#foldEarly())
  }

  #foldInASecond(): void {
    const due = Symbol('due')
    this.#due = due
    this.#deps.later(FOLD_AFTER_MS, async () => {
      if (this.#due !== due) return
      this.#due = undefined
      this.#isEarly = false
      // If it fails, the ledger schedules the next one, a second later.
      await this.#deps.fold().catch(() => {})
    })
  }

  /**
   * Folds at once, and delays the scheduled fold to a second from now: run at its old time, it would write little, and would
   * overwrite nearly all the journal slots that this one leaves, for nothing.
   */
  async #foldEarly(): Promise<void> {
    try {
      await this.#deps.fold()
    } catch {
      return
    }
    this.#isEarly = false
    this.#foldInASecond()
  }
}
