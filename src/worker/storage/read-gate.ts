/** Maximum number of reads of an isolate that the engine has at a time, so that a write waits behind no more. */
const MAX_READS = 4

/**
 * How often a waiting read checks whether it may begin, ms. It polls, because one request cannot safely wake another in
 * workerd.
 */
const POLL_INTERVAL_MS = 5

/** After this time a read counts as lost, because the runtime ended its request, ms. */
const LOST_MS = 30_000

/** Limits the number of concurrent reads, for an engine that runs requests in order of arrival. */
export class ReadGate {
  readonly #now: () => number
  /** The start of each open read. */
  readonly #open = new Map<symbol, number>()

  /** @param now ms */
  constructor(now: () => number) {
    this.#now = now
  }

  async during<Result>(read: () => Promise<Result>): Promise<Result> {
    // Checked again after each pause.
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
