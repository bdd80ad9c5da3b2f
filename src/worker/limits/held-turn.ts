import type { WaitDeps } from './fair-limiter.ts'

/** The account of a turn's owner. */
export interface TurnOwner {
  /** Number of its turns that are running. */
  atWork: number
  /** The total cost that it was given, in virtual time. */
  served: number
}

/** A turn that an owner was given for a request of this cost. */
export interface TakenTurn {
  readonly owner: TurnOwner
  readonly cost: number
}

/** A change of an owner's running work; negative when work ends or pauses. */
export interface WorkChange {
  readonly owner: TurnOwner
  readonly turns: 1 | 0 | -1
  readonly cost: number
}

/** Applies a change of the running work. */
export type CountTurn = (change: WorkChange, deps: WaitDeps) => void

/** The turn of a running request, until it ends. */
export class HeldTurn {
  readonly #owner: TurnOwner
  readonly #deps: WaitDeps
  readonly #count: CountTurn
  #cost: number
  #openWaits = 0
  #hasEnded = false
  #isCounted = true

  /** @param count called with each change; the caller has already counted the turn itself */
  constructor({ owner, cost }: TakenTurn, deps: WaitDeps, count: CountTurn) {
    this.#owner = owner
    this.#cost = cost
    this.#deps = deps
    this.#count = count
  }

  /** Adds cost that only became known during the work. */
  moreCost(cost: number): void {
    this.#owner.served += cost
    this.#cost += cost
    if (this.#isCounted) this.#count({ owner: this.#owner, turns: 0, cost }, this.#deps)
  }

  /**
   * Gives up the turn during a wait of perhaps seconds, so that others can run. Afterwards the work continues at once, even
   * beyond the limit on running requests: it has had its turn, and little of it is left.
   */
  async yieldDuring<Result>(wait: () => Promise<Result>): Promise<Result> {
    this.#openWaits += 1
    this.#update()
    try {
      return await wait()
    } finally {
      this.#openWaits -= 1
      this.#update()
    }
  }

  end(): void {
    this.#hasEnded = true
    this.#update()
  }

  /** The turn counts as running while it has not ended and no wait is open. */
  #update(): void {
    const counts = !this.#hasEnded && this.#openWaits === 0
    if (counts === this.#isCounted) return
    this.#isCounted = counts
    const turns = counts ? 1 : -1
    this.#count({ owner: this.#owner, turns, cost: turns * this.#cost }, this.#deps)
  }
}
