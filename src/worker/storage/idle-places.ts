/** The idle places of a connection pool, some with an open connection and some without. */
export class IdlePlaces<L> {
  #open: L[] = []
  #closed: number

  /** @param size the number of places, all without a connection at first */
  constructor(size: number) {
    this.#closed = size
  }

  get isEmpty(): boolean {
    return this.#closed === 0 && !this.hasOpen
  }

  get hasOpen(): boolean {
    return this.#open.length > 0
  }

  /**
   * Takes a place with the most recently used connection; undefined: no place has a connection, and one without was taken.
   */
  take(): L | undefined {
    const connection = this.#open.pop()
    if (connection === undefined) this.#closed -= 1
    return connection
  }

  put(connection: L | undefined): void {
    if (connection === undefined) this.#closed += 1
    else this.#open.push(connection)
  }

  /**
   * Removes the connections that are old, and keeps their places.
   * @returns the connections, for the caller to close
   */
  empty(isOld: (connection: L) => boolean): readonly L[] {
    const { old = [], rest = [] } = Object.groupBy(this.#open, (one) =>
      isOld(one) ? 'old' : 'rest',
    )
    this.#open = rest
    this.#closed += old.length
    return old
  }
}
