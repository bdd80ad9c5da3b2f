import type { ProviderConnection } from './provider-connection.ts'

/** Most connections that are kept without an exchange. */
const MAX_FREE = 64

/** Connections to one provider, all of one kind; the one that was used last is used first. */
export class ConnectionPool {
  readonly #open: () => Promise<ProviderConnection>
  readonly #free: ProviderConnection[] = []
  #retired = false

  /** @param open opens one more */
  constructor(open: () => Promise<ProviderConnection>) {
    this.#open = open
  }

  /**
   * A connection that no other exchange has; give it back with `release`.
   * @throws unknown what opening one throws
   */
  async take(): Promise<ProviderConnection> {
    const free = this.#takeFree()
    if (free !== undefined) return free
    const opened = await this.#open()
    opened.onClose(() => this.#forget(opened))
    return opened
  }

  /**
   * Keeps a connection for the next exchange, if it is open and there is room: not before the event loop has looked at it once
   * more, since a provider may close it with its answer, and the end is read after all that came with the answer.
   */
  release(connection: ProviderConnection): void {
    if (connection.isOpen) setImmediate(() => setImmediate(() => this.#keep(connection)))
  }

  #keep(connection: ProviderConnection): void {
    if (!connection.isOpen) return
    if (this.#retired || this.#free.length >= MAX_FREE) connection.close()
    else this.#free.push(connection)
  }

  /** Closes idle connections now, and those in use once they are idle. */
  retire(): void {
    this.#retired = true
    for (const connection of this.#free.splice(0)) connection.close()
  }

  /** One that has ended is forgotten a moment later: it may be here yet. */
  #takeFree(): ProviderConnection | undefined {
    for (;;) {
      const free = this.#free.pop()
      if (free === undefined || free.isOpen) return free
    }
  }

  #forget(connection: ProviderConnection): void {
    const at = this.#free.indexOf(connection)
    if (at >= 0) this.#free.splice(at, 1)
  }
}
