import { after, startDeadline } from '../batching/deadline-timer.ts'
import { IdlePlaces } from './idle-places.ts'
import { DeadlinePassed, type OperationDeadline } from './operation-deadline.ts'

/** One connection of a pool, used by one task at a time. */
export interface PooledConnection {
  /** Closes the connection without waiting for answers. */
  discard(): void
  /** Resolves to whether the server answers, as soon as it does. Never rejects. */
  isAlive(): Promise<boolean>
}

/** Who uses a connection, and for what. */
export interface PoolUser {
  readonly owner: string
  readonly reads: boolean
  /** Whether the work is known to wait for a row that another transaction has locked. */
  readonly waits?: boolean
}

export interface ConnectionPool<L extends PooledConnection> {
  /**
   * Gives `work` exclusive use of a connection, in order of arrival within these limits: each owner has at most `share`
   * connections for reads and as many for writes; reads have at most half of all connections, so that they never block
   * writes; and so has work that waits for locked rows.
   * @throws DeadlinePassed when the deadline passes first; the connection of running work is then discarded, because a late
   *   result could not be matched to its query
   */
  use<Result>(
    user: PoolUser,
    deadline: OperationDeadline,
    work: (connection: L) => Promise<Result>,
  ): Promise<Result>
}

export interface ConnectionPoolOptions<L extends PooledConnection> {
  readonly open: () => L
  readonly size: number
  /**
   * Maximum number of connections that one owner has for writing, and the same number for reading. The writes of one owner
   * wait for each other's locks, so more connections would only be taken from others.
   */
  readonly share: number
  /** Whether a connection can still be used after its work failed with this error. */
  readonly survives: (error: unknown) => boolean
  /** Ms. */
  readonly now: () => number
}

/**
 * After this idle time, a connection is probed before its use, ms: a firewall or proxy may have dropped it without telling
 * either side, and work on it would wait until its deadline. Opening a new connection after each pause would cost more than
 * the probe.
 */
const MAX_IDLE_MS = 60_000

/** How long a probed connection may take to answer, ms. */
const MAX_ANSWER_MS = 250

/**
 * Idle connections are checked at this interval and closed when they have been idle for as long, ms: after a busy hour most
 * of them are not needed any more.
 */
const CLOSE_IDLE_MS = 5 * 60_000

/**
 * Connections older than this are replaced, ms, so that they follow a database that has moved, and free the memory that its
 * server holds for each.
 */
const MAX_AGE_MS = 30 * 60_000

/** A connection, when it was opened, and since when it has been idle, ms since the epoch. */
interface Kept<L extends PooledConnection> {
  readonly connection: L
  readonly openedAt: number
  readonly idleSince: number
}

/**
 * A pool of connections. Each is opened at its first use, replaced between two uses when it is old or does not answer, and
 * closed when it has been idle for long.
 */
export function createConnectionPool<L extends PooledConnection>(
  options: ConnectionPoolOptions<L>,
): ConnectionPool<L> {
  const { now, open, survives } = options
  const queue = createConnectionQueue<Kept<L>>(options, watchIdle)
  let isWatched = false

  /** Checks idle connections at intervals, as long as there are any. */
  function watchIdle(): void {
    if (isWatched || !queue.idle.hasOpen) return
    isWatched = true
    after(CLOSE_IDLE_MS, () => {
      isWatched = false
      const since = now() - CLOSE_IDLE_MS
      for (const { connection } of queue.idle.empty(({ idleSince }) => idleSince <= since)) {
        connection.discard()
      }
      watchIdle()
    })
  }

  function release(user: PoolUser, kept: Omit<Kept<L>, 'idleSince'> | undefined): void {
    queue.release(user, kept && { ...kept, idleSince: now() })
  }

  async function usable(
    kept: Kept<L> | undefined,
  ): Promise<Pick<Kept<L>, 'connection' | 'openedAt'>> {
    if (kept !== undefined) {
      const [idleMs, ageMs] = [now() - kept.idleSince, now() - kept.openedAt]
      // A negative time means that the clock was set back: how long the connection was idle is then unknown.
      const isFresh = idleMs >= 0 && idleMs < MAX_IDLE_MS
      if (ageMs < MAX_AGE_MS && (isFresh || (await answers(kept.connection)))) {
        return kept
      }
      kept.connection.discard()
    }
    return { connection: open(), openedAt: now() }
  }

  async function answers(connection: L): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = startDeadline(MAX_ANSWER_MS, now, () => resolve(false))
    const isAlive = await Promise.race([connection.isAlive(), late])
    timer.stop()
    return isAlive
  }

  return {
    async use(user, { passed }, work) {
      await unlessPassed(passed)
      const kept = await queue.acquire(user, passed)
      const ready = await usable(kept).catch((error: unknown) => {
        release(user, undefined)
        throw error
      })
      // The deadline may have passed during the probe.
      await unlessPassed(passed).catch((error: unknown) => {
        release(user, ready)
        throw error
      })
      return runOn(ready.connection, work, passed, {
        done: (connection) => release(user, connection && { ...ready, connection }),
        survives,
      })
    },
  }
}

/**
 * Starts no work after the deadline, because it would be given up at once, at the cost of its connection.
 * @throws DeadlinePassed where the deadline has passed
 */
async function unlessPassed(passed: Promise<never>): Promise<void> {
  await Promise.race([passed, Promise.resolve()])
}

async function runOn<L extends PooledConnection, Result>(
  connection: L,
  work: (connection: L) => Promise<Result>,
  passed: Promise<never>,
  hooks: {
    readonly done: (kept: L | undefined) => void
    readonly survives: ConnectionPoolOptions<L>['survives']
  },
): Promise<Result> {
  try {
    const result = await Promise.race([work(connection), passed])
    hooks.done(connection)
    return result
  } catch (error) {
    const keep = !(error instanceof DeadlinePassed) && hooks.survives(error)
    if (!keep) connection.discard()
    hooks.done(keep ? connection : undefined)
    throw error
  }
}

/**
 * Hands out the places of the pool; undefined stands for a place whose connection is not open.
 * @param onIdle called when a place has become idle
 */
function createConnectionQueue<L>(
  { size, share }: Pick<ConnectionPoolOptions<PooledConnection>, 'size' | 'share'>,
  onIdle: () => void,
) {
  const idle = new IdlePlaces<L>(size)
  const busy = new Map<string, number>()
  const used = { reading: 0, waiting: 0 }
  const half = Math.max(1, Math.floor(size / 2))
  const waiting: { user: PoolUser; take: (connection: L | undefined) => void }[] = []

  const nameOf = ({ owner, reads }: PoolUser) => `${reads ? 'reads' : 'writes'} ${owner}`
  const mayTake = (user: PoolUser) =>
    (busy.get(nameOf(user)) ?? 0) < share &&
    !(user.reads && used.reading >= half) &&
    !(user.waits === true && used.waiting >= half)
  const count = (user: PoolUser, change: 1 | -1) => {
    const name = nameOf(user)
    const now = (busy.get(name) ?? 0) + change
    if (now === 0) busy.delete(name)
    else busy.set(name, now)
    if (user.reads) used.reading += change
    if (user.waits === true) used.waiting += change
  }

  async function acquire(user: PoolUser, passed: Promise<never>): Promise<L | undefined> {
    if (!idle.isEmpty && mayTake(user)) {
      count(user, 1)
      return idle.take()
    }
    const { promise, resolve } = Promise.withResolvers<L | undefined>()
    const waiter = { user, take: resolve }
    waiting.push(waiter)
    try {
      return await Promise.race([promise, passed])
    } catch (error) {
      const index = waiting.indexOf(waiter)
      if (index >= 0) waiting.splice(index, 1)
      else void promise.then((connection) => release(user, connection))
      throw error
    }
  }

  function release(user: PoolUser, connection: L | undefined): void {
    count(user, -1)
    const index = waiting.findIndex((waiter) => mayTake(waiter.user))
    const [next] = index < 0 ? [] : waiting.splice(index, 1)
    if (next === undefined) {
      idle.put(connection)
      onIdle()
    } else {
      count(next.user, 1)
      next.take(connection)
    }
  }

  return { acquire, release, idle }
}
