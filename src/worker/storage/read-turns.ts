/** Runs reads one after another. What has arrived meanwhile runs between two of them, so that no write waits for more than one read. */
export class ReadTurns {
  /** Resolves when the latest of the reads that have come is over, and what came meanwhile has run. */
  #last: Promise<void> = Promise.resolve()

  async run<Result>(read: () => Promise<Result>): Promise<Result> {
    const before = this.#last
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last = promise
    await before
    try {
      return await read()
    } finally {
      setTimeout(() => resolve(), 0)
    }
  }
}
