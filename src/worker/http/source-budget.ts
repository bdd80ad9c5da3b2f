/** Limits on how often something may be done in each time window. */
export interface BudgetLimits {
  readonly perSource: number
  readonly total: number
  readonly windowMs: number
}

/** Limits how often clients without a key may cause work that costs more than a refusal, per source and in total. */
export class SourceBudget {
  readonly #limits: BudgetLimits
  readonly #now: () => number
  readonly #spent = new Map<string, number>()
  #total = 0
  #windowStart = Number.NEGATIVE_INFINITY

  /** @param now ms since the epoch */
  constructor(limits: BudgetLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  /** Whether a source has budget left in this window. */
  has(source: string): boolean {
    const { perSource, total } = this.#limits
    this.#openWindow()
    return this.#total < total && (this.#spent.get(source) ?? 0) < perSource
  }

  /** Takes one unit of a source's budget; false where none is left in this window. */
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
