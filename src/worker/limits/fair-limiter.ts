import { clientDisconnected, type ApiError } from '../http/errors.ts'

/** Limits of a shared resource. The unit of all amounts is the caller's choice (bytes, requests). */
export interface FairLimits {
  /** Total amount. Must be at least the largest amount of a single request, which would never be served otherwise. */
  readonly capacity: number
  /** Maximum amount that one owner may hold, unless a single request needs more. */
  readonly share: number
  /** How many requests of one owner may wait. */
  readonly maxWaiting: number
  readonly maxWaitMs: number
  /** Makes the error of a request that waited too long, or that found too many requests of its owner waiting. */
  readonly refusal: () => ApiError
}

/** The clock and the timer that waiting uses. */
export interface WaitDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
}

/** The same, and the client whose disconnect ends the wait. */
export interface EnterDeps extends WaitDeps {
  /** Aborts when the client disconnects; absent where the request continues without its client. */
  readonly client?: AbortSignal | undefined
}

/** A held amount. `leave` releases it; a second call has no effect. */
export interface Place {
  leave(): void
}

interface Ticket {
  readonly owner: string
  readonly amount: number
}

/**
 * How often a waiting request checks whether it may continue, ms. It polls because workerd does not let one request
 * safely resolve a promise that another request awaits.
 */
const POLL_INTERVAL_MS = 20

/** A forgotten owner counts as never served. */
const MAX_REMEMBERED_OWNERS = 1_000

/**
 * Divides a scarce resource among owners: memory for uploads, reads of the ledger, time to measure audio. No owner holds
 * more than its share. The next request served belongs to the waiting owner that holds least; of several that hold as much,
 * to the one that was served longest ago; within one owner, the oldest is first. While the next request does not fit, all
 * others wait for it: otherwise a flow of small requests could make a large one wait forever.
 */
export class FairLimiter {
  readonly #limits: FairLimits
  readonly #waiting: Ticket[] = []
  readonly #held = new Map<string, number>()
  /** When each owner was last served, as a number that grows with each service. */
  readonly #servedAt = new Map<string, number>()
  #served = 0
  #taken = 0

  constructor(limits: FairLimits) {
    this.#limits = limits
  }

  /**
   * Waits until the amount is available, and holds it.
   * @throws ApiError made by `refusal` when the request waited too long or too many are waiting; another one when the client
   *   has disconnected
   */
  async enter(owner: string, amount: number, deps: EnterDeps): Promise<Place> {
    const { maxWaiting, maxWaitMs, refusal } = this.#limits
    const ticket: Ticket = { owner, amount }
    const giveUpAt = deps.now() + maxWaitMs
    this.#waiting.push(ticket)
    try {
      while (!this.#mayEnter(ticket)) {
        if (deps.client?.aborted === true) throw clientDisconnected()
        const waiting = this.#waiting.filter((other) => other.owner === owner).indexOf(ticket)
        if (waiting >= maxWaiting || deps.now() >= giveUpAt) throw refusal()
        await deps.pause(POLL_INTERVAL_MS)
      }
      this.#take(owner, amount)
      this.#noteServed(owner)
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(ticket), 1)
    }
    return this.#place(owner, amount)
  }

  /**
   * Holds `amount` while `work` runs.
   * @throws ApiError as `enter` does
   */
  async during<Result>(
    owner: string,
    amount: number,
    deps: EnterDeps,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const place = await this.enter(owner, amount, deps)
    try {
      return await work()
    } finally {
      place.leave()
    }
  }

  #mayEnter(ticket: Ticket): boolean {
    return this.#next() === ticket && this.#taken + ticket.amount <= this.#limits.capacity
  }

  /** The waiting request to serve next: within its owner's share, and before all others. */
  #next(): Ticket | undefined {
    let next: Ticket | undefined
    for (const ticket of this.#waiting) {
      const held = this.#heldBy(ticket.owner)
      const fits = held === 0 || held + ticket.amount <= this.#limits.share
      if (fits && (next === undefined || this.#comesBefore(ticket, next))) next = ticket
    }
    return next
  }

  /** Whether a request is served before one that arrived earlier. */
  #comesBefore({ owner }: Ticket, { owner: earlier }: Ticket): boolean {
    const [held, others] = [this.#heldBy(owner), this.#heldBy(earlier)]
    if (held !== others) return held < others
    return (this.#servedAt.get(owner) ?? 0) < (this.#servedAt.get(earlier) ?? 0)
  }

  #noteServed(owner: string): void {
    this.#served += 1
    this.#servedAt.delete(owner)
    this.#servedAt.set(owner, this.#served)
    const [longestAgo] = this.#servedAt.keys()
    if (this.#servedAt.size > MAX_REMEMBERED_OWNERS && longestAgo !== undefined) {
      this.#servedAt.delete(longestAgo)
    }
  }

  #heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  #take(owner: string, amount: number): void {
    this.#taken += amount
    const held = this.#heldBy(owner) + amount
    if (held === 0) this.#held.delete(owner)
    else this.#held.set(owner, held)
  }

  #place(owner: string, amount: number): Place {
    let held = amount
    return {
      leave: () => {
        this.#take(owner, -held)
        held = 0
      },
    }
  }
}
