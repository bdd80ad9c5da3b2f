/**
 * Divides a scarce resource among owners without a queue and without revoking what an owner holds: an owner may hold at
 * most as much as is still free. A single owner thus gets half, and the more owners there are, the less each can hold,
 * so that something is always left for the next one (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on
 * Networking 6(2), 1998). The unit of amounts is the caller's choice.
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
   * Takes an amount for an owner, to be returned with `giveBack`.
   * @returns `full` when not enough is free; `share` when enough is free but this owner already holds its share
   */
  take(owner: string, amount: number): 'taken' | 'full' | 'share' {
    const free = this.#capacity - this.#taken
    // The negated comparison also refuses NaN, which would make the sum NaN for good.
    if (!(amount <= free)) return 'full'
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
