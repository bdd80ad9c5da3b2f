/**
 * Runs reads one after another. Between two reads, other pending work runs, so that no write waits for more than one read.
 */
export class ReadTurns {
  /** Resolves when the latest queued read is over and the event loop has turned once. */
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
