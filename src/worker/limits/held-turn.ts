import type { WaitDeps } from './fair-limiter.ts'

/** What counts against the owner of a turn. */
export interface TurnOwner {
  /** Its turns that are at work. */
  atWork: number
  /** The total cost that it was given. */
  served: number
}

/** A turn that was given to an owner, for a request of this cost. */
export interface TakenTurn {
  readonly owner: TurnOwner
  readonly cost: number
}

/** What there is more of an owner at work; less where it is negative. */
export interface WorkChange {
  readonly owner: TurnOwner
  readonly turns: 1 | 0 | -1
  readonly cost: number
}

/** Notes what there is more at work, or less. */
export type CountTurn = (change: WorkChange, deps: WaitDeps) => void

/** The turn of a request at work, until it has ended. */
export class HeldTurn {
  readonly #owner: TurnOwner
  readonly #deps: WaitDeps
  readonly #count: CountTurn
  #cost: number
  #openWaits = 0
  #hasEnded = false
  #isCounted = true

  /** @param count called with each change; the turn itself is counted already */
  constructor({ owner, cost }: TakenTurn, deps: WaitDeps, count: CountTurn) {
    this.#owner = owner
    this.#cost = cost
    this.#deps = deps
    this.#count = count
  }

  /** Adds what the work turns out to cost besides the cost of its turn. */
  moreCost(cost: number): void {
    this.#owner.served += cost
    this.#cost += cost
    if (this.#isCounted) this.#count({ owner: this.#owner, turns: 0, cost }, this.#deps)
  }

  /**
   * Lets others run during a wait of maybe seconds. After it the work goes on at once, even beside as many as may run: it has
   * had its turn, and little of it is left.
   */
  async aside<Result>(wait: () => Promise<Result>): Promise<Result> {
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

  /** It counts while it has not ended and waits for nothing. */
  #update(): void {
    const counts = !this.#hasEnded && this.#openWaits === 0
    if (counts === this.#isCounted) return
    this.#isCounted = counts
    const turns = counts ? 1 : -1
    this.#count({ owner: this.#owner, turns, cost: turns * this.#cost }, this.#deps)
  }
}
