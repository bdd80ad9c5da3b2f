import type { FrontLimits } from './limits.ts'

/**
 * How far a connection has come. `held`: it has said nothing yet, or no worker has taken it. `handshaking`: it has a
 * connection to the worker behind it, and TLS is not up. `established`: it is the worker's business.
 */
export type Stage = 'held' | 'handshaking' | 'established'

/** A connection as the table knows it. */
export interface Connection {
  /** The client, or those it cannot be told apart from. */
  readonly source: string
  /** Seconds on the table's clock. */
  readonly cameAt: number
  close(): void
}

/** How long a client may take for its first byte, and for its TLS handshake; workerd has no clock for either. */
const PATIENCE_SECONDS: Readonly<Record<Exclude<Stage, 'established'>, number>> = {
  held: 30,
  handshaking: 15,
}

/** Who has been in a handshake for so long may be closed for another. */
const HANDSHAKE_SECONDS = 3

/** What was turned away since the last look. */
export interface Pressure {
  readonly refused: number
  readonly closed: number
}

/** Connections in the order in which they came: of one source, or of all. */
class Pool<C extends Connection> {
  readonly stages: Readonly<Record<Stage, Set<C>>> = {
    held: new Set(),
    handshaking: new Set(),
    established: new Set(),
  }

  get size(): number {
    return this.stages.held.size + this.relayed
  }

  get relayed(): number {
    return this.stages.handshaking.size + this.stages.established.size
  }

  /** Whether the connection was known. */
  remove(connection: C): boolean {
    const { held, handshaking, established } = this.stages
    return (
      held.delete(connection) || handshaking.delete(connection) || established.delete(connection)
    )
  }
}

/**
 * Holds the connections of a front to its bounds. Who is in the way goes first: the oldest that never sent a byte, then
 * the oldest that does not end its handshake. One that has reached the worker is never closed for another: if there is
 * nobody else, the newcomer is refused. (The worker itself closes those that ask nothing for 15 seconds.)
 */
export class ConnectionTable<C extends Connection> {
  readonly #limits: FrontLimits
  readonly #now: () => number
  readonly #all = new Pool<C>()
  readonly #bySource = new Map<string, Pool<C>>()
  #refused = 0
  #closed = 0

  /** @param now whole seconds, of a clock that never goes back */
  constructor(limits: FrontLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  get size(): number {
    return this.#all.size
  }

  get relayed(): number {
    return this.#all.relayed
  }

  /** Takes a new connection in, `held`, with others closed for it where there is no room; false: refuse it. */
  add(connection: C): boolean {
    const own = this.#bySource.get(connection.source) ?? new Pool<C>()
    const fits =
      (own.size < this.#limits.perSource || this.#closeOldest(own)) &&
      (this.#all.size < this.#limits.connections || this.#closeOldest(this.#all))
    if (!fits) return this.#refuse()
    this.#bySource.set(connection.source, own)
    own.stages.held.add(connection)
    this.#all.stages.held.add(connection)
    return true
  }

  /** Notes how far a connection has come; false: there is no room for it there, or it is none of these. */
  move(connection: C, stage: Stage): boolean {
    const own = this.#bySource.get(connection.source)
    if (own === undefined) return false
    const comesNew = stage !== 'held' && this.#all.stages.held.has(connection)
    const fits =
      !comesNew || this.#all.relayed < this.#limits.relayed || this.#closeOldestHandshake(this.#all)
    if (!fits) return this.#refuse()
    for (const pool of [own, this.#all]) {
      if (pool.remove(connection)) pool.stages[stage].add(connection)
    }
    return true
  }

  /** Forgets a connection that is over. */
  remove(connection: C): void {
    const own = this.#bySource.get(connection.source)
    own?.remove(connection)
    this.#all.remove(connection)
    if (own?.size === 0) this.#bySource.delete(connection.source)
  }

  /** Closes those whose time is over. */
  closeLate(): void {
    const now = this.#now()
    for (const stage of ['held', 'handshaking'] as const) {
      for (const connection of this.#all.stages[stage]) {
        if (now - connection.cameAt >= PATIENCE_SECONDS[stage]) this.#close(connection)
      }
    }
  }

  /** What was turned away since this was last asked. */
  takePressure(): Pressure {
    const pressure = { refused: this.#refused, closed: this.#closed }
    this.#refused = 0
    this.#closed = 0
    return pressure
  }

  #closeOldest(pool: Pool<C>): boolean {
    const [oldest] = pool.stages.held
    return oldest === undefined ? this.#closeOldestHandshake(pool) : this.#close(oldest)
  }

  #closeOldestHandshake(pool: Pool<C>): boolean {
    const [oldest] = pool.stages.handshaking
    const late = oldest !== undefined && this.#now() - oldest.cameAt >= HANDSHAKE_SECONDS
    return late && this.#close(oldest)
  }

  #close(connection: C): true {
    this.remove(connection)
    this.#closed += 1
    connection.close()
    return true
  }

  #refuse(): false {
    this.#refused += 1
    return false
  }
}
