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

/** Notes that there is one turn more, or one less, at work. */
export type CountTurn = (turn: TakenTurn, change: 1 | -1, deps: WaitDeps) => void

/** The turn of a request at work, until it has ended. */
export class HeldTurn {
  readonly #turn: TakenTurn
  readonly #deps: WaitDeps
  readonly #count: CountTurn
  #openWaits = 0
  #hasEnded = false
  #isCounted = true

  /** @param count called with each change; the turn itself is counted already */
  constructor(turn: TakenTurn, deps: WaitDeps, count: CountTurn) {
    this.#turn = turn
    this.#deps = deps
    this.#count = count
  }

  /** Adds what the work turns out to cost besides the cost of its turn. */
  moreCost(cost: number): void {
    this.#turn.owner.served += cost
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
    this.#count(this.#turn, counts ? 1 : -1, this.#deps)
  }
}
