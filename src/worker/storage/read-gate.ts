/** How many reads of an isolate the engine has at a time: a write waits behind no more. */
const MAX_READS = 4

/** How often a waiting read looks whether it may begin, ms. One request cannot safely wake another in workerd. */
const POLL_INTERVAL_MS = 5

/** After this time a read counts as lost, with the request that it belonged to, ms. */
const LOST_MS = 30_000

/** Lets few reads through at a time, for an engine that serves what it is sent in order of arrival. */
export class ReadGate {
  readonly #now: () => number
  /** When each read began that has not ended. */
  readonly #open = new Map<symbol, number>()

  /** @param now ms */
  constructor(now: () => number) {
    this.#now = now
  }

  async during<Result>(read: () => Promise<Result>): Promise<Result> {
    // It looks again after each wait.
    while (this.#count() >= MAX_READS) await pause(POLL_INTERVAL_MS)
    const own = Symbol('read')
    this.#open.set(own, this.#now())
    try {
      return await read()
    } finally {
      this.#open.delete(own)
    }
  }

  #count(): number {
    for (const [read, begunAt] of this.#open) {
      if (Math.abs(this.#now() - begunAt) >= LOST_MS) this.#open.delete(read)
    }
    return this.#open.size
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
