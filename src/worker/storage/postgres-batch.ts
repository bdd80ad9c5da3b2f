import type postgres from 'postgres'
import type { BatchRows } from './batch-outcome.ts'
import type { Row, Statement } from './database.ts'
import { isWrongIsolation, survives } from './postgres-errors.ts'
import { isRead } from './sql.ts'

/** A batch failed (`cause` says why) at a point where it cannot have written anything, so it may be run again. */
export class NotCommitted extends Error {
  constructor(cause: unknown) {
    super('the batch failed before it wrote', { cause })
    this.name = 'NotCommitted'
  }
}

const SNAPSHOT = 'isolation level repeatable read read only'
const READ_COMMITTED = 'isolation level read committed'
const SERIALIZABLE = 'isolation level serializable'

/** A customer's row is the lock that serialises the customer's batches. */
const LOCK_CUSTOMER = 'SELECT 1 FROM customers WHERE customer_id = ? FOR UPDATE'

/**
 * Limits of a writing transaction that the server itself enforces, so that it does not outlive a lost host: how long it
 * waits for a lock, and how long it holds its locks while its host is silent. They are set within the transaction, because
 * connection poolers refuse or forget settings of a connection.
 */
const LIMIT_TRANSACTION = `SELECT set_config('lock_timeout', ?, true),
  set_config('idle_in_transaction_session_timeout', ?, true)`

/** Limits a transaction that calls a ledger function, which sets its lock timeout itself. */
const LIMIT_IDLE = `SELECT set_config('idle_in_transaction_session_timeout', ?, true)`

/** Limits the statements of a batch of reads, so that none outlives the caller's wait for its result. */
const LIMIT_STATEMENTS = `SELECT set_config('statement_timeout', ?, true)`

/** Statements that run as one transaction. */
export interface Batch {
  /** Null: of the directory. */
  readonly customerId: string | null
  readonly statements: readonly Statement[]
}

export interface BatchLimits {
  /** How long one statement of a batch that only reads may take, ms. */
  readonly readMs: number
  /** How long a batch that writes may wait for one lock, ms; called once its transaction has begun. */
  readonly lockMs: () => number
  /** After this time without a statement, the server ends the transaction, ms. */
  readonly idleMs: number
}

/**
 * Runs one batch as one transaction on one connection. Its statements are pipelined.
 *
 * Engines with one writer run batches one after another, and the schema's SQL relies on that. Here, a batch that writes for
 * a customer first locks the customer's row and then reads what is committed: it waits for other transactions instead of
 * failing. Batches of the directory are few and use SERIALIZABLE, which may require a retry. Reads see one snapshot.
 * @throws NotCommitted when the batch can safely be run again; any other error as the driver throws it
 */
export async function runPostgresBatch(
  sql: postgres.Sql,
  batch: Batch,
  limits: BatchLimits,
): Promise<BatchRows> {
  const { statements } = batch
  if (statements.length === 0) return []
  if (!statements.every(isRead)) return runWrites(sql, batch, limits)
  try {
    return await runReads(sql, statements, limits.readMs)
  } catch (error) {
    throw new NotCommitted(error)
  }
}

async function runReads(
  sql: postgres.Sql,
  statements: readonly Statement[],
  readMs: number,
): Promise<BatchRows> {
  const limit = { sql: LIMIT_STATEMENTS, params: [String(readMs)] }
  return (await runAtOnce(sql, SNAPSHOT, [limit, ...statements])).slice(1)
}

async function runWrites(
  sql: postgres.Sql,
  { customerId, statements }: Batch,
  { lockMs, idleMs }: BatchLimits,
): Promise<BatchRows> {
  let begun = false
  const isolation = customerId === null ? SERIALIZABLE : READ_COMMITTED
  const lock = customerId === null ? [] : [{ sql: LOCK_CUSTOMER, params: [customerId] }]
  const { promise: lost, reject: lose } = Promise.withResolvers<never>()
  const transaction = async (tx: Runner): Promise<BatchRows> => {
    begun = true
    const limit = { sql: LIMIT_TRANSACTION, params: [String(lockMs()), String(idleMs)] }
    const first = [limit, ...lock]
    try {
      return (await runAll(tx, [...first, ...statements])).slice(first.length)
    } catch (error) {
      if (survives(error)) throw error
      // The driver would send a ROLLBACK, whose rejection nobody catches if the connection is gone. The pool discards the
      // connection.
      lose(error)
      return new Promise(() => {})
    }
  }
  try {
    return await Promise.race([lost, sql.begin(isolation, transaction)])
  } catch (error) {
    throw begun ? error : new NotCommitted(error)
  }
}

/**
 * Calls a function that is a whole transaction by itself, at READ COMMITTED: as a single statement where that is the
 * connection's default, else within a transaction.
 * @param idleMs after this time without a statement the server ends that transaction, ms
 * @throws as the driver throws it
 */
export async function callFunction(
  sql: postgres.Sql,
  statement: Statement,
  idleMs: number,
): Promise<readonly Row[]> {
  try {
    return await run(sql, statement)
  } catch (error) {
    if (!isWrongIsolation(error)) throw error
    const limit = { sql: LIMIT_IDLE, params: [String(idleMs)] }
    const [, rows = []] = await runAtOnce(sql, READ_COMMITTED, [limit, statement])
    return rows
  }
}

/** Runs a transaction in one round trip. If a statement fails, the COMMIT rolls back. */
async function runAtOnce(
  sql: postgres.Sql,
  isolation: string,
  statements: readonly Statement[],
): Promise<BatchRows> {
  const begun = sql.unsafe(`BEGIN ${isolation}`).execute()
  const rows = runAll(sql, statements)
  const committed = sql.unsafe('COMMIT').execute()
  // Answers come in order, so the first failure is the cause of those after it.
  const [, answers] = await Promise.all([begun, rows, committed])
  return answers
}

type Runner = Pick<postgres.Sql, 'unsafe'>

function runAll(runner: Runner, statements: readonly Statement[]): Promise<BatchRows> {
  return Promise.all(statements.map((statement) => run(runner, statement)))
}

async function run(runner: Runner, { sql, params }: Statement): Promise<readonly Row[]> {
  const query = runner.unsafe<Row[]>(numberPlaceholders(sql), [...params], { prepare: true })
  // Sent now: a query would otherwise be sent only when it is awaited, and the order would be lost.
  const rows = await query.execute()
  // Copied to a plain array: the driver's array also describes the statement, which cannot be sent between objects.
  return Array.from(rows)
}

/** Skips quoted text, quoted names and comments; a `?` in them is not a placeholder. */
const PLACEHOLDER = /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\?/g

/** Rewrites the placeholders `?` to `$1`, `$2`, ... */
export function numberPlaceholders(sql: string): string {
  let count = 0
  return sql.replace(PLACEHOLDER, (found) => (found === '?' ? `$${++count}` : found))
}
