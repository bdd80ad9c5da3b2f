import type { ProviderConnection } from './provider-connection.ts'

/** Most idle connections that are kept. */
const MAX_FREE = 64

/**
 * Connections to one provider, all opened under the same conditions. The connection that was used last is reused first.
 */
export class ConnectionPool {
  readonly #open: () => Promise<ProviderConnection>
  readonly #free: ProviderConnection[] = []
  #retired = false

  /** @param open opens another connection */
  constructor(open: () => Promise<ProviderConnection>) {
    this.#open = open
  }

  /**
   * Takes a connection for one exchange; return it with `release`.
   * @throws unknown what opening a connection throws
   */
  async take(): Promise<ProviderConnection> {
    const free = this.#takeFree()
    if (free !== undefined) return free
    const opened = await this.#open()
    opened.onClose(() => this.#forget(opened))
    return opened
  }

  /**
   * Keeps a connection for the next exchange, if it is still open and the pool has room. The check waits two turns of
   * the event loop: a provider may close the connection together with its answer, and the socket reports that only
   * after everything that came with the answer.
   */
  release(connection: ProviderConnection): void {
    if (connection.isOpen) setImmediate(() => setImmediate(() => this.#keep(connection)))
  }

  #keep(connection: ProviderConnection): void {
    if (!connection.isOpen) return
    if (this.#retired || this.#free.length >= MAX_FREE) connection.close()
    else this.#free.push(connection)
  }

  /** Closes idle connections now, and each connection in use once it is released. */
  retire(): void {
    this.#retired = true
    for (const connection of this.#free.splice(0)) connection.close()
  }

  /** Skips connections that are closed: `onClose` removes them a little later than they close. */
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
