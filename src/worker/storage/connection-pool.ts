import { after, startDeadline } from '../batching/deadline-timer.ts'
import { IdlePlaces } from './idle-places.ts'
import { DeadlinePassed, type OperationDeadline } from './operation-deadline.ts'

/** One connection of a pool, used by one batch at a time. */
export interface PooledConnection {
  /** Drops the connection without waiting for an answer. */
  discard(): void
  /** Whether the other side answers, as soon as it does. Never rejects. */
  isAlive(): Promise<boolean>
}

/** For whom a connection is used, and for what. */
export interface PoolUser {
  readonly owner: string
  readonly reads: boolean
  /** Whether it is known to wait for a row that another transaction has locked. */
  readonly waits?: boolean
}

export interface ConnectionPool<L extends PooledConnection> {
  /**
   * Gives `work` exclusive use of a connection, first come, first served, but no owner more than its share, and reads no
   * more than half of all, so that no number of them keeps a write waiting; likewise work that waits for locked rows.
   * @throws DeadlinePassed when the deadline passes first; the connection of the work is then replaced, because a late result
   *   on it could not be matched to its query
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
   * Maximum number of connections of one owner for writing, and as many for reading: its writes wait for each other's
   * locks and must leave connections for others.
   */
  readonly share: number
  /** Whether a connection can still be used after its work failed with this error. */
  readonly survives: (error: unknown) => boolean
  /** Ms. */
  readonly now: () => number
}

/**
 * What is between may have forgotten a connection that was idle for so long, and tell neither side: work on it would wait until
 * its time is up. So it is asked first. A new one would cost each use after a rest more than the question does.
 */
const MAX_IDLE_MS = 60_000

/** How long such a connection may take to answer. */
const MAX_ANSWER_MS = 250

/**
 * A connection that was idle for so long is closed at the next look, of which there is one in the same time: the last ones of a busy
 * hour are of no more use.
 */
const CLOSE_IDLE_MS = 5 * 60_000

/** So that connections follow a database that has moved, and its server's memory of each is freed. */
const MAX_AGE_MS = 30 * 60_000

/** A connection, and since when it is there and idle. */
interface Kept<L extends PooledConnection> {
  readonly connection: L
  readonly openedAt: number
  readonly idleSince: number
}

/**
 * A pool of connections, each opened at its first use, renewed between two uses once it is old or no longer answers, and closed
 * when it was not used for long.
 */
export function createConnectionPool<L extends PooledConnection>(
  options: ConnectionPoolOptions<L>,
): ConnectionPool<L> {
  const { now, open, survives } = options
  const queue = createConnectionQueue<Kept<L>>(options, watchIdle)
  let isWatched = false

  /** Looks at idle connections from time to time, as long as there are any. */
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
      // After the clock was set back nothing says how long it was idle.
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
      // The time may have passed while the connection was asked whether it answers.
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
 * Work that is given up at once would only cost its connection.
 * @throws DeadlinePassed where the time is up already
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
 * Hands out connections; undefined stands for one that is not open.
 * @param onIdle called when one has become idle
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
