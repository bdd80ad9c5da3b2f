/** The places of a pool that nobody uses: with a connection that is open, or without one. */
export class IdlePlaces<L> {
  #open: L[] = []
  #closed: number

  /** @param size how many places there are, of which none has a connection */
  constructor(size: number) {
    this.#closed = size
  }

  get isEmpty(): boolean {
    return this.#closed === 0 && !this.hasOpen
  }

  get hasOpen(): boolean {
    return this.#open.length > 0
  }

  /** The connection that was used last; undefined: there is none, and the place is without. */
  take(): L | undefined {
    const connection = this.#open.pop()
    if (connection === undefined) this.#closed -= 1
    return connection
  }

  put(connection: L | undefined): void {
    if (connection === undefined) this.#closed += 1
    else this.#open.push(connection)
  }

  /** Takes connections out of their places. */
  empty(isOld: (connection: L) => boolean): readonly L[] {
    const { old = [], rest = [] } = Object.groupBy(this.#open, (one) =>
      isOld(one) ? 'old' : 'rest',
    )
    this.#open = rest
    this.#closed += old.length
    return old
  }
}
