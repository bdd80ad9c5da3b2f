/** How long after a failed fold readers do not try another one, ms. */
const REST_MS = 250

export interface SharedFoldDeps {
  /** Runs work after a time in ms. */
  readonly later: (ms: number, work: () => Promise<void>) => void
  /** Folds when its turn comes among all work, and calls `begun` when it begins. Rejects where the fold failed. */
  readonly fold: (begun: () => void) => Promise<void>
}

/**
 * The fold before a read. Readers that wait at the same time share one fold, and for a short time also its error: a fold
 * that fails on a full disk costs as much as one that succeeds, and all other work waits for it.
 */
export class SharedFold {
  readonly #deps: SharedFoldDeps
  /** The fold that waits for its turn; it will write everything that is in memory by then. */
  #waiting: Promise<void> | undefined
  #failed: { readonly error: unknown } | undefined

  constructor(deps: SharedFoldDeps) {
    this.#deps = deps
  }

  /**
   * Folds, or joins a fold that has not begun.
   * @throws what the fold throws, or what the last one threw within `REST_MS`
   */
  async run(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed.error
    this.#waiting ??= this.#begin()
    await this.#waiting
  }

  /** To be called after every successful fold, whoever asked for it. */
  succeeded(): void {
    this.#failed = undefined
  }

  async #begin(): Promise<void> {
    try {
      await this.#deps.fold(() => void (this.#waiting = undefined))
    } catch (error) {
      const failed = { error }
      this.#failed = failed
      this.#deps.later(REST_MS, async () => {
        if (this.#failed === failed) this.#failed = undefined
      })
      throw error
    }
  }
}
