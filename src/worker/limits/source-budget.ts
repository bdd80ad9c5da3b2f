/** How often something may be done in each window of time. */
export interface BudgetLimits {
  readonly perSource: number
  readonly total: number
  readonly windowMs: number
}

/** Limits how often clients without a key may cause work that costs more than a refusal, one source and all together. */
export class SourceBudget {
  readonly #limits: BudgetLimits
  readonly #now: () => number
  readonly #spent = new Map<string, number>()
  #total = 0
  #windowStart = Number.NEGATIVE_INFINITY

  /** @param now ms */
  constructor(limits: BudgetLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  /** Takes one for a source. False: there is none left in this window. */
  spend(source: string): boolean {
    const { perSource, total, windowMs } = this.#limits
    const now = this.#now()
    if (Math.abs(now - this.#windowStart) >= windowMs) {
      this.#windowStart = now
      this.#total = 0
      this.#spent.clear()
    }
    const spent = this.#spent.get(source) ?? 0
    if (spent >= perSource || this.#total >= total) return false
    this.#spent.set(source, spent + 1)
    this.#total += 1
    return true
  }
}
