import type { Database, Statement } from '../storage/database.ts'
import { numberOf, textOf } from '../storage/row.ts'
import { int64, raw, sql, text } from '../storage/sql.ts'

/**
 * Erasure of customers (docs/admin.md). Keys and names go at once; the rest in bounded rounds, because one transaction
 * over all receipts of a customer would hold up everybody. Requests that are at work are settled under the old id
 * first. What is left in the end is the ledger, under an id that nothing leads to from the old one.
 */

/** Receipts and rows of the ledger that one round takes. */
const RECEIPTS_OF_A_ROUND = 200
const ROWS_OF_A_ROUND = 500

/** Customers that one round takes. */
const CUSTOMERS_OF_A_ROUND = 4

/** The admin interface takes no longer ones, in UTF-16 units. */
const MAX_NAME_CHARACTERS = 400

/** How long a customer whose requests are still at work is left alone. */
const WAIT_MS = 10_000

/**
 * Begins to erase a customer: from now on nobody can use or see it. Done twice it changes nothing.
 * @param ledgerId the id that the ledger is kept under, where this is the first time
 * @returns that id; undefined when there is no such customer, or it was erased
 */
export async function beginErasure(
  db: Database,
  customerId: string,
  ledgerId: string,
  now: number,
): Promise<string | undefined> {
  const own = sql`customer_id = ${customerId}`
  const underWay = sql`EXISTS (SELECT 1 FROM erasures WHERE erasures.customer_id = ${customerId})`
  const rows = await db.batch([
    sql`UPDATE customers SET lock_request_id = '' WHERE ${own}`,
    sql`INSERT INTO erasures (customer_id, ledger_id, next_at)
      SELECT customer_id, ${text(ledgerId)}, ${int64(now)} FROM customers
      WHERE ${own} AND erased_at IS NULL ON CONFLICT (customer_id) DO NOTHING`,
    // Names are written over in their own length: what is only cleared stays in the file.
    sql`UPDATE customers SET name = ${filler('name')},
        suspended_at = COALESCE(suspended_at, ${int64(now)}),
        erased_at = COALESCE(erased_at, ${int64(now)}), erased_keys = erased_keys +
          (SELECT COUNT(*) FROM api_keys WHERE api_keys.customer_id = ${customerId})
      WHERE ${own} AND ${underWay}`,
    sql`UPDATE api_keys SET name = ${filler('name')}, key_hash = ${filler('key_hash')}
      WHERE ${own} AND ${underWay}`,
    ...['api_keys', 'rotated_keys', 'directory_customers'].map(
      (table) => sql`DELETE FROM ${raw(table)} WHERE ${own} AND ${underWay}`,
    ),
    sql`SELECT ledger_id FROM erasures WHERE ${own}`,
  ])
  const [row] = rows.at(-1) ?? []
  return row === undefined ? undefined : textOf(row, 'ledger_id')
}

/** As many zeros as the text has characters, as a part of a statement. */
function filler(column: string): Statement {
  return raw(`SUBSTR('${'0'.repeat(MAX_NAME_CHARACTERS)}', 1, LENGTH(${column}))`)
}

/** One bounded round for each of the customers whose turn it is. */
export async function eraseRound(db: Database, now: number): Promise<void> {
  const [due = []] = await db.batch([
    sql`SELECT customer_id, ledger_id FROM erasures WHERE next_at <= ${int64(now)}
      ORDER BY next_at, customer_id LIMIT ${CUSTOMERS_OF_A_ROUND}`,
  ])
  for (const row of due) {
    const [customerId, ledgerId] = [textOf(row, 'customer_id'), textOf(row, 'ledger_id')]
    // oxlint-disable-next-line no-await-in-loop -- each is a transaction of its own, in turns with those of requests
    const waitMs = await eraseSome(db, customerId, ledgerId)
    // oxlint-disable-next-line no-await-in-loop -- as above
    await db.batch([
      sql`UPDATE erasures SET next_at = ${int64(now + waitMs)} WHERE customer_id = ${customerId}`,
    ])
  }
}

/** Takes the next part of a customer's data. Answers how long the one after it must wait, ms. */
async function eraseSome(db: Database, customerId: string, ledgerId: string): Promise<number> {
  const receiptsLeft = await eraseReceipts(db, customerId)
  if (receiptsLeft) return 0
  const [open = []] = await db.batch([
    sql`SELECT COUNT(*) AS count FROM reservations WHERE customer_id = ${customerId}`,
  ])
  if (open[0] !== undefined && numberOf(open[0], 'count') > 0) return WAIT_MS
  const [moved = []] = await db.batch([moveLedger(customerId, ledgerId)])
  if (moved.length === 0) await db.batch(finish(customerId, ledgerId))
  return 0
}

/**
 * Deletes receipts whose bodies an earlier round wrote over, and writes over the next ones in their own length, so that
 * nothing of them stays in the file.
 */
async function eraseReceipts(db: Database, customerId: string): Promise<boolean> {
  const some = (state: string) => sql`customer_id = ${customerId} AND receipt_id IN (
    SELECT receipt_id FROM receipts WHERE customer_id = ${customerId} AND ${raw(state)}
    ORDER BY receipt_id LIMIT ${RECEIPTS_OF_A_ROUND})`
  await db.batch([sql`DELETE FROM receipts WHERE ${some('body_state > 0')}`])
  const [sizes = []] = await db.batch([
    sql`SELECT COUNT(*) AS count, COALESCE(MAX(LENGTH(jws)), 0) AS longest FROM receipts
      WHERE ${some('body_state = 0')}`,
  ])
  const [size] = sizes
  if (size === undefined || numberOf(size, 'count') === 0) return hasReceipts(db, customerId)
  const longest = numberOf(size, 'longest')
  await db.batch([
    sql`UPDATE receipts SET jws = SUBSTR(${'0'.repeat(longest)}, 1, LENGTH(jws)), body_state = 1
      WHERE ${some('body_state = 0')} AND LENGTH(jws) <= ${int64(longest)}`,
  ])
  return true
}

async function hasReceipts(db: Database, customerId: string): Promise<boolean> {
  const [rows = []] = await db.batch([
    sql`SELECT receipt_id FROM receipts WHERE customer_id = ${customerId} LIMIT 1`,
  ])
  return rows.length > 0
}

/** The rows of the ledger stay, without the key and the receipt that they were for. */
function moveLedger(customerId: string, ledgerId: string): Statement {
  return sql`UPDATE usage SET customer_id = ${ledgerId}, key_prefix = '', receipt_id = NULL
    WHERE customer_id = ${customerId} AND seq IN (SELECT seq FROM usage
      WHERE customer_id = ${customerId} ORDER BY seq LIMIT ${ROWS_OF_A_ROUND})
    RETURNING id`
}

/** What belongs to the customer alone and is small; all or nothing, and only once the rest is gone. */
const OWN_TABLES = ['evidence', 'idempotent_requests', 'webhook_events'] as const

function finish(customerId: string, ledgerId: string): readonly Statement[] {
  const own = sql`customer_id = ${customerId}`
  const done = sql`EXISTS (SELECT 1 FROM customers WHERE customers.customer_id = ${ledgerId})`
  const left = ['usage', 'reservations', 'receipts'].map(
    (table) => sql`NOT EXISTS (SELECT 1 FROM ${raw(table)} WHERE ${own})`,
  )
  const nothingLeft = left.reduce((one, other) => sql`${one} AND ${other}`)
  return [
    sql`UPDATE customers SET lock_request_id = '' WHERE ${own}`,
    sql`UPDATE customers SET customer_id = ${ledgerId}, name = '' WHERE ${own} AND ${nothingLeft}`,
    sql`UPDATE credits SET customer_id = ${ledgerId} WHERE ${own} AND ${done}`,
    sql`UPDATE quarantined_settlements SET customer_id = ${ledgerId},
        settlement = REPLACE(settlement, ${text(customerId)}, ${text(ledgerId)})
      WHERE ${own} AND ${done}`,
    sql`DELETE FROM webhook_deliveries WHERE ${done} AND event_id IN (
      SELECT id FROM webhook_events WHERE ${own})`,
    ...OWN_TABLES.map((table) => sql`DELETE FROM ${raw(table)} WHERE ${own} AND ${done}`),
    sql`INSERT INTO directory_customers (customer_id, created_at)
      SELECT customer_id, created_at FROM customers WHERE customer_id = ${ledgerId}
      ON CONFLICT (customer_id) DO NOTHING`,
    sql`DELETE FROM erasures WHERE ${own} AND ${done}`,
  ]
}
