import { storageError, type BatchRows } from './batch-outcome.ts'
import type { PoolUser } from './connection-pool.ts'
import { lockMsOf, readMsOf, type OperationDeadline } from './operation-deadline.ts'
import { NotCommitted, runPostgresBatch, type Batch, type BatchLimits } from './postgres-batch.ts'
import type { PostgresConnection } from './postgres-connection.ts'
import {
  causeOf,
  classifyPostgresError,
  describePostgresError,
  isLockTimeout,
} from './postgres-errors.ts'
import type { RowWaits } from './row-waits.ts'
import { isRead } from './sql.ts'

/**
 * Maximum number of connections on which a batch is tried while it has written nothing: idle ones may have been lost
 * unnoticed.
 */
const MAX_CONNECTIONS = 3

/** How long a batch waits for a lock before its customer counts as waiting (`RowWaits`), ms. */
const LOCK_WAIT_MS = 250

/** How long a batch waits for a lock while another batch of its customer is already waiting, ms. */
const PROBE_WAIT_MS = 1

/** Gives exclusive use of a connection, and retries transactions that lost to a concurrent one. */
export type OnConnection = <Result>(
  user: PoolUser,
  deadline: OperationDeadline,
  work: (connection: PostgresConnection) => Promise<Result>,
) => Promise<Result>

export interface PostgresBatchesDeps {
  readonly onConnection: OnConnection
  /** Shared with the ledger's operations, which lock the same rows. */
  readonly rows: RowWaits
  /** After this time without a statement the server ends a writing transaction, ms. */
  readonly idleMs: number
}

interface Terms {
  readonly user: PoolUser
  readonly lockMs: BatchLimits['lockMs']
  readonly deadline: OperationDeadline
}

/**
 * Runs batches on connections of the pool. If a transaction of another host keeps the customer's row locked, a batch waits
 * for it like the ledger's operations (`RowWaits`), so that such customers never hold all connections.
 * @returns runs one batch; throws StorageUnavailable or StatementRefused
 */
export function createPostgresBatches({
  onConnection,
  rows,
  idleMs,
}: PostgresBatchesDeps): (batch: Batch, deadline: OperationDeadline) => Promise<BatchRows> {
  async function tryConnections(batch: Batch, { user, lockMs, deadline }: Terms) {
    for (let connection = 1; ; connection++) {
      try {
        return await onConnection(user, deadline, ({ sql }) =>
          runPostgresBatch(sql, batch, { readMs: readMsOf(deadline), lockMs, idleMs }),
        )
      } catch (error) {
        const failure = classifyPostgresError(error)
        const again = error instanceof NotCommitted && connection < MAX_CONNECTIONS
        if (failure === 'unavailable' && again) continue
        const cause = causeOf(error)
        throw storageError(describePostgresError(error), failure === 'refused', cause)
      }
    }
  }

  /** Runs a batch; undefined: a lock was not granted in time, and nothing was written. */
  async function tryLocks(batch: Batch, terms: Terms) {
    try {
      return await tryConnections(batch, terms)
    } catch (error) {
      if (isLockTimeout(error)) return undefined
      throw error
    }
  }

  async function write(batch: Batch, customerId: string, deadline: OperationDeadline) {
    const user = { owner: customerId, reads: false }
    const lockMs = () =>
      Math.min(lockMsOf(deadline), rows.has(customerId) ? PROBE_WAIT_MS : LOCK_WAIT_MS)
    const tryAgain = () => tryLocks(batch, { user, lockMs, deadline })
    const done = rows.has(customerId) ? undefined : await tryAgain()
    return (
      done ??
      rows.queue(customerId, deadline, {
        wait: () =>
          tryConnections(batch, {
            user: { ...user, waits: true },
            lockMs: () => lockMsOf(deadline),
            deadline,
          }),
        tryAgain,
        hadRow: (end) =>
          end.status === 'fulfilled' || classifyPostgresError(end.reason) === 'refused',
      })
    )
  }

  return (batch, deadline) => {
    const { customerId, statements } = batch
    const reads = statements.every(isRead)
    if (customerId !== null && !reads) return write(batch, customerId, deadline)
    const user = { owner: customerId ?? '', reads }
    return tryConnections(batch, { user, lockMs: () => lockMsOf(deadline), deadline })
  }
}
