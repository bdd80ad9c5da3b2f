/** A turn that was taken; ending it twice changes nothing. */
export interface Turn {
  end(): void
}

export interface TurnRules {
  /** How many turns may be taken at the same time. */
  readonly most: number
  /** No turn lasts longer; one that was never ended is over by then. Ms. */
  readonly longestMs: number
  /** For how long a caller waits for one. Ms. */
  readonly patienceMs: number
}

/**
 * Lets so many callers do something at the same time, and the others wait. They look for themselves whether there
 * is room, because in this runtime a request had better not be woken by another one's doing: the more of them
 * there are, the less often each looks.
 */
export class Turns {
  readonly #rules: TurnRules
  readonly #now: () => number
  readonly #pause: (ms: number) => Promise<void>
  readonly #taken = new Map<Turn, number>()
  #waiting = 0

  constructor(rules: TurnRules, now: () => number, pause: (ms: number) => Promise<void>) {
    this.#rules = rules
    this.#now = now
    this.#pause = pause
  }

  /** A turn, or undefined when there was none in time. */
  async take(): Promise<Turn | undefined> {
    const giveUpAt = this.#now() + this.#rules.patienceMs
    this.#waiting += 1
    try {
      while (!this.#hasRoom()) {
        if (this.#now() >= giveUpAt) return undefined
        await this.#pause(LOOK_EVERY_MS * Math.ceil(this.#waiting / this.#rules.most))
      }
    } finally {
      this.#waiting -= 1
    }
    const turn = { end: () => void this.#taken.delete(turn) }
    this.#taken.set(turn, this.#now())
    return turn
  }

  #hasRoom(): boolean {
    const { most, longestMs } = this.#rules
    if (this.#taken.size < most) return true
    for (const [turn, since] of this.#taken) if (this.#now() - since > longestMs) turn.end()
    return this.#taken.size < most
  }
}

const LOOK_EVERY_MS = 5
