import type postgres from 'postgres'
import type { BatchRows } from './batch-outcome.ts'
import type { Row, Statement } from './database.ts'
import { isWrongIsolation } from './postgres-errors.ts'
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
 * Runs one batch as one transaction on a connection of its own, its statements sent without waiting between them.
 *
 * Engines with one writer run batches one after another, and the schema's SQL relies on it. Here a writing batch of a
 * customer first locks the customer's row and then reads what is committed: it waits for others instead of failing.
 * Batches of the directory are few and use SERIALIZABLE, which may require a
 * retry. Reads see one snapshot.
 * @throws NotCommitted when it can safely be run again; any other error as the driver throws it
 */
export async function runPostgresBatch(
  sql: postgres.Sql,
  customerId: string | null,
  statements: readonly Statement[],
): Promise<BatchRows> {
  const [only] = statements
  if (only === undefined) return []
  if (!statements.every(isRead)) return runWrites(sql, customerId, statements)
  try {
    if (statements.length === 1) return [await run(sql, only)]
    return await sql.begin(SNAPSHOT, (tx) => runAll(tx, statements))
  } catch (error) {
    throw new NotCommitted(error)
  }
}

async function runWrites(
  sql: postgres.Sql,
  customerId: string | null,
  statements: readonly Statement[],
): Promise<BatchRows> {
  let begun = false
  const isolation = customerId === null ? SERIALIZABLE : READ_COMMITTED
  try {
    return await sql.begin(isolation, async (tx) => {
      begun = true
      if (customerId === null) return runAll(tx, statements)
      const lock = { sql: LOCK_CUSTOMER, params: [customerId] }
      const [, ...rows] = await runAll(tx, [lock, ...statements])
      return rows
    })
  } catch (error) {
    throw begun ? error : new NotCommitted(error)
  }
}

/**
 * Calls a function that is a whole transaction by itself, at READ COMMITTED: in one round trip where that is the
 * connection's default.
 * @throws as the driver throws it
 */
export async function callFunction(
  sql: postgres.Sql,
  statement: Statement,
): Promise<readonly Row[]> {
  try {
    return await run(sql, statement)
  } catch (error) {
    if (!isWrongIsolation(error)) throw error
    return await sql.begin(READ_COMMITTED, (tx) => run(tx, statement))
  }
}

type Runner = Pick<postgres.Sql, 'unsafe'>

function runAll(runner: Runner, statements: readonly Statement[]): Promise<BatchRows> {
  return Promise.all(statements.map((statement) => run(runner, statement)))
}

async function run(runner: Runner, { sql, params }: Statement): Promise<readonly Row[]> {
  const query = runner.unsafe<Row[]>(numberPlaceholders(sql), [...params], { prepare: true })
  // Sent now: a query would otherwise wait until it is awaited, and the order would be lost.
  const rows = await query.execute()
  // A plain array: the driver's own contains a description of the statement that cannot be sent between objects.
  return Array.from(rows)
}

/** Skips quoted text, quoted names and comments; a `?` in them is not a placeholder. */
const PLACEHOLDER = /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\?/g

/** Rewrites the placeholders `?` to `$1`, `$2`, ... */
export function numberPlaceholders(sql: string): string {
  let count = 0
  return sql.replace(PLACEHOLDER, (found) => (found === '?' ? `$${++count}` : found))
}
