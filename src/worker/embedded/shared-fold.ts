/** After a fold that failed, how long it is not tried again for those who only read, ms. */
const REST_MS = 250

export interface SharedFoldDeps {
  /** Runs work after a time in ms. */
  readonly later: (ms: number, work: () => Promise<void>) => void
  /** Takes its turn among all work. Rejects where nothing could be written. */
  readonly fold: (begun: () => void) => Promise<void>
}

/**
 * The fold before a read. All who wait for one share it, and where it fails, for a short time also the error: a fold on a disk
 * that is full costs as much as one that succeeds, and all other work waits for it.
 */
export class SharedFold {
  readonly #deps: SharedFoldDeps
  /** Waits for its turn, so that it will write all that there is by now. */
  #waiting: Promise<void> | undefined
  #failed: { readonly error: unknown } | undefined

  constructor(deps: SharedFoldDeps) {
    this.#deps = deps
  }

  /** @throws what the fold throws, or the last one threw */
  async run(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed.error
    this.#waiting ??= this.#begin()
    await this.#waiting
  }

  /** A fold of any origin has succeeded. */
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
