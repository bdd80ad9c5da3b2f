import type postgres from 'postgres'
import type { Row, Statement } from './database.ts'
import { isRead, numberPlaceholders } from './postgres-dialect.ts'

type Rows = readonly (readonly Row[])[]

/** A customer's row is the lock under which that customer's batches run one after another. */
const LOCK_CUSTOMER = 'SELECT 1 FROM customers WHERE customer_id = $1 FOR UPDATE'

/**
 * Runs one batch as one transaction on a connection of its own, its statements sent without waiting between.
 *
 * Engines with one writer run batches one after another, and the schema's SQL counts on it. Here a writing batch
 * of a customer first locks the customer's row and then reads what is committed: it waits for others instead of
 * failing, also on CockroachDB and YugabyteDB. Batches of the directory are few and take SERIALIZABLE, which may
 * ask for a retry. Reads see one snapshot.
 */
export async function runPostgresBatch(
  sql: postgres.Sql,
  customerId: string | null,
  statements: readonly Statement[],
): Promise<Rows> {
  const [only] = statements
  if (only === undefined) return []
  if (statements.every(isRead)) {
    if (statements.length === 1) return [await run(sql, only)]
    return sql.begin('isolation level repeatable read read only', (tx) => runAll(tx, statements))
  }
  if (customerId === null) {
    return sql.begin('isolation level serializable', (tx) => runAll(tx, statements))
  }
  return sql.begin('isolation level read committed', async (tx) => {
    const lock = tx.unsafe(LOCK_CUSTOMER, [customerId], { prepare: true })
    const [, rows] = await Promise.all([lock, runAll(tx, statements)])
    return rows
  })
}

type Runner = Pick<postgres.Sql, 'unsafe'>

function runAll(runner: Runner, statements: readonly Statement[]): Promise<Rows> {
  return Promise.all(statements.map((statement) => run(runner, statement)))
}

async function run(runner: Runner, { sql, params }: Statement): Promise<readonly Row[]> {
  const rows = await runner.unsafe<Row[]>(numberPlaceholders(sql), [...params], { prepare: true })
  // A plain array: the driver's own carries a description of the statement that cannot leave the object.
  return Array.from(rows)
}
