import type { TlsTarget } from '../outbound/tls-connect.ts'
import { PinnedConnection } from './pinned-connection.ts'

/** Most connections that are kept without an exchange. */
const MAX_FREE = 64

/** Where the connections of a pool lead. */
export interface PoolTarget {
  /** Scheme, host and port. */
  readonly origin: string
  readonly tls: TlsTarget
  /** The key that the evidence binds. */
  readonly spkiSha256: string
}

/** Connections to one provider under one proof; the one that was used last is used first. */
export class ConnectionPool {
  readonly #target: PoolTarget
  readonly #free: PinnedConnection[] = []
  #retired = false

  constructor(target: PoolTarget) {
    this.#target = target
  }

  /**
   * A connection that no other exchange has; give it back with `release`.
   * @throws ConnectFailure
   * @throws PinMismatch
   */
  async take(): Promise<PinnedConnection> {
    const free = this.#takeFree()
    if (free !== undefined) return free
    const { origin, tls, spkiSha256 } = this.#target
    const opened = await PinnedConnection.open(origin, tls, spkiSha256)
    opened.onClose(() => this.#forget(opened))
    return opened
  }

  /** Keeps a connection for the next exchange, if it is open and there is room. */
  release(connection: PinnedConnection): void {
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
  #takeFree(): PinnedConnection | undefined {
    for (;;) {
      const free = this.#free.pop()
      if (free === undefined || free.isOpen) return free
    }
  }

  #forget(connection: PinnedConnection): void {
    const at = this.#free.indexOf(connection)
    if (at >= 0) this.#free.splice(at, 1)
  }
}
