import type { TurnOwner } from './held-turn.ts'

/** A waiting request. */
export interface Ticket {
  readonly cost: number
  /** When its turn was granted, ms since the epoch; undefined while it has none. */
  calledAt: number | undefined
  wake: () => void
}

/**
 * An owner of requests. `served` is in virtual time: the cost it was given, added to the virtual time at which it became
 * active.
 */
export interface Owner extends TurnOwner {
  seenAt: number
  /** In the order in which they will run. */
  readonly waiting: Ticket[]
}

/** The owners that have asked recently, or have requests that wait or run. */
export class ActiveOwners {
  readonly #activeMs: number
  /** In the order in which they were last seen. */
  readonly #owners = new Map<string, Owner>()

  /** @param activeMs how long after its last request an owner counts as active, ms */
  constructor(activeMs: number) {
    this.#activeMs = activeMs
  }

  /** Number of remembered owners. */
  get size(): number {
    return this.#owners.size
  }

  /**
   * Records that an owner asks, and forgets inactive owners here, too, because `count` may never be called.
   * @param now ms since the epoch
   * @param time the virtual time: an idle owner does not accumulate credit
   */
  seen(name: string, now: number, time: number): Owner {
    const owner = this.#owners.get(name) ?? { atWork: 0, seenAt: now, served: 0, waiting: [] }
    owner.seenAt = now
    owner.served = Math.max(owner.served, time)
    this.#owners.delete(name)
    this.#owners.set(name, owner)
    this.#forget(now)
    return owner
  }

  /** Number of active owners. */
  count(now: number): number {
    this.#forget(now)
    return this.#owners.size
  }

  #forget(now: number): void {
    for (const [name, { atWork, seenAt, waiting }] of this.#owners) {
      const isActive = Math.abs(now - seenAt) < this.#activeMs
      if (isActive || atWork > 0 || waiting.length > 0) break
      this.#owners.delete(name)
    }
  }
}
