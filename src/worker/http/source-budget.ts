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

  /** Whether a source has any left in this window. */
  has(source: string): boolean {
    const { perSource, total } = this.#limits
    this.#openWindow()
    return this.#total < total && (this.#spent.get(source) ?? 0) < perSource
  }

  /** Takes one for a source. False: there is none left in this window. */
  spend(source: string): boolean {
    if (!this.has(source)) return false
    this.#spent.set(source, (this.#spent.get(source) ?? 0) + 1)
    this.#total += 1
    return true
  }

  #openWindow(): void {
    const now = this.#now()
    if (Math.abs(now - this.#windowStart) < this.#limits.windowMs) return
    this.#windowStart = now
    this.#total = 0
    this.#spent.clear()
  }
}
