import type { WaitDeps } from './fair-limiter.ts'
import type { FairTurns } from './fair-turns.ts'
import type { HeldTurn } from './held-turn.ts'

/** The turns of one request; it holds at most one at a time. */
export class RequestTurns {
  readonly #turns: FairTurns
  readonly #owner: string
  readonly #deps: WaitDeps
  #held: HeldTurn | undefined

  constructor(turns: FairTurns, owner: string, deps: WaitDeps) {
    this.#turns = turns
    this.#owner = owner
    this.#deps = deps
  }

  /**
   * Runs the first part of the request's work when its turn comes; see `FairTurns.begin`.
   * @throws ApiError when it waited too long, too many are waiting, or the client has disconnected
   */
  begin<Result>(
    turn: { readonly cost: number; readonly client: AbortSignal },
    work: (moreCost: (cost: number) => void) => Promise<Result>,
  ): Promise<Result> {
    return this.#turns.begin({ ...turn, owner: this.#owner }, this.#deps, (held) =>
      this.#during(held, () => work((cost) => held.moreCost(cost))),
    )
  }

  /** Runs the last part of the request's work: never refused, and ahead of its owner's new requests. */
  finish<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#turns.finish({ owner: this.#owner, cost: 1 }, this.#deps, (held) =>
      this.#during(held, work),
    )
  }

  /** Awaits something that may take seconds, and meanwhile gives up the turn that the request holds, if any. */
  yieldDuring<Result>(wait: () => Promise<Result>): Promise<Result> {
    return this.#held === undefined ? wait() : this.#held.yieldDuring(wait)
  }

  async #during<Result>(held: HeldTurn, work: () => Promise<Result>): Promise<Result> {
    this.#held = held
    try {
      return await work()
    } finally {
      this.#held = undefined
    }
  }
}
