/** How long what was settled and reserved may wait for the tables, ms. */
const FOLD_AFTER_MS = 1_000

/**
 * So many settlements do not wait that long, unless the engine's owner says another number: everything else waits while a
 * fold runs, for about a tenth of a millisecond with each of them.
 */
const MANY_BILLS = 256

export interface FoldScheduleDeps {
  /** Runs work after a time in ms. */
  readonly later: (ms: number, work: () => Promise<void>) => void
  /** Rejects where nothing could be written. */
  readonly fold: () => Promise<void>
  /** How many settlements do not wait for the time that fewer wait. */
  readonly foldAt?: number | undefined
}

/** When the next fold of a ledger runs: a second after there was something to fold, or early. */
export class FoldSchedule {
  readonly #deps: FoldScheduleDeps
  /** Names the fold that runs within a second, where there is one. */
  #due: symbol | undefined
  /** Whether a fold was begun early, and has not succeeded. */
  #isEarly = false

  constructor(deps: FoldScheduleDeps) {
    this.#deps = deps
  }

  /** Whether a fold will run within a second. */
  get isDue(): boolean {
    return this.#due !== undefined
  }

  /**
   * Sees to it that a fold runs soon.
   * @param waitingBills how many settlements it would write
   */
  arrange(waitingBills: number): void {
    if (!this.isDue) this.#foldInASecond()
    const { foldAt = MANY_BILLS } = this.#deps
    if (this.#isEarly || waitingBills < foldAt) return
    this.#isEarly = true
    // After the answers of those that have come so far.
    this.#deps.later(0, () => this.#foldEarly())
  }

  #foldInASecond(): void {
    const due = Symbol('due')
    this.#due = due
    this.#deps.later(FOLD_AFTER_MS, async () => {
      if (this.#due !== due) return
      this.#due = undefined
      this.#isEarly = false
      // Where it fails, the next one is due a second later.
      await this.#deps.fold().catch(() => {})
    })
  }

  /**
   * What was due is then done, and what comes now has a second of its own: a fold of the little that came since would overwrite
   * nearly all that this one leaves in the journal, for nothing.
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
