/**
 * Shows what was asked for last. A router decides how long it takes to answer: what it answered to an earlier question, under
 * another root for example, must not come late and stand in the place of the verdict on a later one.
 */
export class Latest<Value> {
  readonly #show: (value: Value) => void
  #turn = 0

  constructor(show: (value: Value) => void) {
    this.#show = show
  }

  /** Shows a value; what is still awaited is not shown any more. */
  set(value: Value): void {
    this.#turn += 1
    this.#show(value)
  }

  /** Shows what the work leads to, unless something else was asked for meanwhile. */
  async await(work: Promise<Value>): Promise<void> {
    this.#turn += 1
    const turn = this.#turn
    const value = await work
    if (turn === this.#turn) this.#show(value)
  }
}
