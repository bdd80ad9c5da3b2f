import type { ApiError } from '../http/errors.ts'

/** What is shared, and how. Amounts are in whatever unit the callers ask in. */
export interface FairLimits {
  /** At least as much as one request may ask for. */
  readonly capacity: number
  /** The most of one owner, unless a single request asks for more. */
  readonly share: number
  /** How many requests of one owner may wait. */
  readonly maxWaiting: number
  readonly maxWaitMs: number
  /** What a request is told that waited too long, or has too many waiting before it. */
  readonly refusal: () => ApiError
}

/** What waiting takes. */
export interface WaitTools {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
}

/** A part of what is shared; `leave` gives it back, and doing so twice changes nothing. */
export interface Place {
  leave(): void
}

interface Ticket {
  readonly owner: string
  readonly amount: number
}

/**
 * How often a waiting request looks whether it may go on. It looks for itself, because in this runtime a request
 * had better not be woken by another one's doing.
 */
const POLL_INTERVAL_MS = 20

/**
 * Shares something scarce among owners: memory for uploads, reads of the ledger, time to measure. No owner has more
 * than its share; of those who wait, the owner who has least goes first, and within one owner whoever came first.
 * Whoever is first and does not fit holds up the rest, so that small requests do not starve large ones.
 */
export class FairLimiter {
  readonly #limits: FairLimits
  readonly #waiting: Ticket[] = []
  readonly #held = new Map<string, number>()
  #taken = 0

  constructor(limits: FairLimits) {
    this.#limits = limits
  }

  /** @throws ApiError the refusal of the limits */
  async enter(owner: string, amount: number, tools: WaitTools): Promise<Place> {
    const { maxWaiting, maxWaitMs, refusal } = this.#limits
    const ticket: Ticket = { owner, amount }
    const giveUpAt = tools.now() + maxWaitMs
    this.#waiting.push(ticket)
    try {
      while (!this.#mayEnter(ticket)) {
        const waiting = this.#waiting.filter((other) => other.owner === owner).indexOf(ticket)
        if (waiting >= maxWaiting || tools.now() >= giveUpAt) throw refusal()
        await tools.pause(POLL_INTERVAL_MS)
      }
      this.#take(owner, amount)
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(ticket), 1)
    }
    return this.#place(owner, amount)
  }

  /** Does work in a place of its own. @throws ApiError the refusal of the limits */
  async during<Result>(
    owner: string,
    amount: number,
    tools: WaitTools,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const place = await this.enter(owner, amount, tools)
    try {
      return await work()
    } finally {
      place.leave()
    }
  }

  #mayEnter(ticket: Ticket): boolean {
    return this.#next() === ticket && this.#taken + ticket.amount <= this.#limits.capacity
  }

  /** Of those within their owner's share the one whose owner has least; of equals the first to come. */
  #next(): Ticket | undefined {
    let next: Ticket | undefined
    for (const ticket of this.#waiting) {
      const held = this.#heldBy(ticket.owner)
      const fits = held === 0 || held + ticket.amount <= this.#limits.share
      if (fits && (next === undefined || held < this.#heldBy(next.owner))) next = ticket
    }
    return next
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
