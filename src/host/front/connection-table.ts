import type { FrontLimits } from './limits.ts'

/**
 * The state of a connection. `held`: it has sent nothing yet, or no worker has accepted it. `handshaking`: it is
 * connected to a worker, and its TLS handshake is not finished. `established`: the worker handles it.
 */
export type Stage = 'held' | 'handshaking' | 'established'

/** A connection in the table. */
export interface Connection {
  /** The client's address, or the network of addresses that counts as one client. */
  readonly source: string
  /** Seconds on the table's clock. */
  readonly openedAt: number
  close(): void
}

/**
 * Time limits, since workerd has none: for the first byte, counted from the start of the connection; for the TLS
 * handshake, counted from when a worker has accepted the connection, so that a client does not lose time while a worker
 * is replaced.
 */
const TIMEOUT_SECONDS: Readonly<Record<Exclude<Stage, 'established'>, number>> = {
  held: 30,
  handshaking: 15,
}

/** A handshake that has taken this long may be closed to make room for a new connection. */
const HANDSHAKE_EVICTION_SECONDS = 3

/** The connections refused and closed since the last report. */
export interface Pressure {
  readonly refused: number
  readonly closed: number
}

/** Connections in order of arrival: of one source, or of all. */
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

  /**
   * Removes a connection.
   * @returns whether it was in the pool
   */
  remove(connection: C): boolean {
    const { held, handshaking, established } = this.stages
    return (
      held.delete(connection) || handshaking.delete(connection) || established.delete(connection)
    )
  }
}

/**
 * Enforces the limits of a front. To make room, it closes the oldest connection that has sent nothing, then the oldest
 * unfinished handshake. It never closes an established connection: if there is nothing else to close, the new one is
 * refused. (The worker itself closes connections without a request after 15 seconds.)
 *
 * One source may have at most as many connections to the worker as are still free, so that sources that take as many as
 * they can still leave room for the next source (the same rule as in src/worker/limits/fair-share.ts). The rule does
 * not apply where the operator allows one source half of all connections or more, as behind a load balancer, where one
 * address is many clients.
 */
export class ConnectionTable<C extends Connection> {
  readonly #limits: FrontLimits
  readonly #now: () => number
  readonly #all = new Pool<C>()
  readonly #bySource = new Map<string, Pool<C>>()
  /** When each handshake reached a worker. */
  readonly #begunAt = new WeakMap<C, number>()
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

  /** How many TLS handshakes are in progress. */
  get handshaking(): number {
    return this.#all.stages.handshaking.size
  }

  /** Adds a new connection as `held`, closing another if there is no room. Returns false if it must be refused. */
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

  /** Changes the state of a connection. Returns false if there is no room for it in that state, or it is unknown. */
  move(connection: C, stage: Stage): boolean {
    const own = this.#bySource.get(connection.source)
    if (own === undefined) return false
    const comesNew = stage !== 'held' && this.#all.stages.held.has(connection)
    if (comesNew && !this.#hasRoomToRelay(own)) return this.#refuse()
    for (const pool of [own, this.#all]) {
      if (pool.remove(connection)) pool.stages[stage].add(connection)
    }
    if (stage === 'handshaking') this.#begunAt.set(connection, this.#now())
    return true
  }

  /** Removes a connection that has ended. */
  remove(connection: C): void {
    const own = this.#bySource.get(connection.source)
    own?.remove(connection)
    this.#all.remove(connection)
    if (own?.size === 0) this.#bySource.delete(connection.source)
  }

  /** Closes connections that exceeded their time limit. */
  closeExpired(): void {
    const now = this.#now()
    const { held, handshaking } = this.#all.stages
    for (const connection of held) {
      if (now - connection.openedAt >= TIMEOUT_SECONDS.held) this.#close(connection)
    }
    for (const connection of handshaking) {
      if (this.#secondsOf(connection) >= TIMEOUT_SECONDS.handshaking) this.#close(connection)
    }
  }

  /** Returns the counts since the last call, and resets them. */
  takePressure(): Pressure {
    const pressure = { refused: this.#refused, closed: this.#closed }
    this.#refused = 0
    this.#closed = 0
    return pressure
  }

  #hasRoomToRelay(own: Pool<C>): boolean {
    const { relayed, perSource } = this.#limits
    const free = relayed - this.#all.relayed
    if (free <= 0) return this.#closeOldestHandshake(this.#all)
    return own.relayed < free || perSource >= relayed / 2 || this.#closeOldestHandshake(own)
  }

  #closeOldest(pool: Pool<C>): boolean {
    const [oldest] = pool.stages.held
    return oldest === undefined ? this.#closeOldestHandshake(pool) : this.#close(oldest)
  }

  #closeOldestHandshake(pool: Pool<C>): boolean {
    const [oldest] = pool.stages.handshaking
    const overdue = oldest !== undefined && this.#secondsOf(oldest) >= HANDSHAKE_EVICTION_SECONDS
    return overdue && this.#close(oldest)
  }

  /** How long a handshake has taken, seconds. */
  #secondsOf(connection: C): number {
    return this.#now() - (this.#begunAt.get(connection) ?? connection.openedAt)
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
