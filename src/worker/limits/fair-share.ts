/**
 * Shares something scarce among owners without a queue and without taking anything back: an owner may have no more
 * than what is left free beside it, so one alone gets half, and the more there are the less each can have. There is
 * always something left for the next one (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking
 * 6(2), 1998). Amounts are in whatever unit the caller counts.
 */
export class FairShare {
  readonly #capacity: number
  readonly #held = new Map<string, number>()
  #taken = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get taken(): number {
    return this.#taken
  }

  /**
   * Takes an amount for an owner, to be given back with `giveBack`.
   * @returns `full`: nobody can have it now; `share`: others could, this owner has its part already
   */
  take(owner: string, amount: number): 'taken' | 'full' | 'share' {
    const free = this.#capacity - this.#taken
    if (amount > free) return 'full'
    const held = this.#held.get(owner) ?? 0
    if (held > 0 && held + amount > free) return 'share'
    this.#set(owner, held + amount)
    this.#taken += amount
    return 'taken'
  }

  giveBack(owner: string, amount: number): void {
    this.#set(owner, (this.#held.get(owner) ?? 0) - amount)
    this.#taken -= amount
  }

  #set(owner: string, amount: number): void {
    if (amount > 0) this.#held.set(owner, amount)
    else this.#held.delete(owner)
  }
}
