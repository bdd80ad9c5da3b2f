/**
 * Shows only the result of the latest request. A router decides how long its answer takes, so the late result of an
 * earlier request, for example under another release root, must not replace a newer verdict.
 */
export class Latest<Value> {
  readonly #show: (value: Value) => void
  #turn = 0

  constructor(show: (value: Value) => void) {
    this.#show = show
  }

  /** Shows a value, and discards the results of pending work. */
  set(value: Value): void {
    this.#turn += 1
    this.#show(value)
  }

  /** Shows the result of the work, unless something newer was requested meanwhile. */
  async await(work: Promise<Value>): Promise<void> {
    this.#turn += 1
    const turn = this.#turn
    const value = await work
    if (turn === this.#turn) this.#show(value)
  }
}
