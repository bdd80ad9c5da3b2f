import { CLOCKS_DIFFER_MS } from '../storage/clock-difference.ts'
import type { Database, Statement } from '../storage/database.ts'
import { numberOf, textOf } from '../storage/row.ts'
import { int64, raw, sql, text } from '../storage/sql.ts'
import { overwriteBodies } from './overwrite.ts'
import { withoutCustomer } from './quarantine.ts'
import { lockCustomer } from './settle-sql.ts'

/**
 * Erasure of customers (docs/admin.md). Keys and names are erased at once; the rest follows in bounded rounds, because
 * one transaction over all receipts of a customer would delay all other requests. Requests in progress are settled
 * under the old id first. Finally only the ledger remains, under a new id that cannot be linked to the old one.
 */

/** Receipts, blocks of totals and ledger rows processed in one round. */
const RECEIPTS_OF_A_ROUND = 200
const BLOCKS_OF_A_ROUND = 100
const ROWS_OF_A_ROUND = 500

/** Customers processed in one round. */
const CUSTOMERS_OF_A_ROUND = 4

/**
 * The maximum size of a name: the admin interface accepts 200 UTF-16 units, each of which takes up to three bytes in UTF-8.
 */
const MAX_NAME_BYTES = 600

/** Delay before a customer with requests in progress is tried again, ms. */
const WAIT_MS = 10_000

/**
 * Begins to erase a customer: from now on the customer can be neither used nor seen. Idempotent.
 * @param ledgerId the id under which the ledger is kept; later calls keep the id of the first one
 * @returns the id under which the ledger is kept; undefined when there is no such customer, or it was erased
 * @throws StorageUnavailable when the storage does not answer
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
    // Overwrites each name at its own length before any other change: clearing a name, or any update that changes the length
    // of its row, would leave the old bytes in the file.
    sql`UPDATE customers SET name = ${filler('name')} WHERE ${own} AND erased_at IS NULL`,
    lockCustomer(customerId),
    sql`INSERT INTO erasures (customer_id, ledger_id, next_at)
      SELECT customer_id, ${text(ledgerId)}, ${int64(now)} FROM customers
      WHERE ${own} AND erased_at IS NULL ON CONFLICT (customer_id) DO NOTHING`,
    sql`UPDATE customers SET suspended_at = COALESCE(suspended_at, ${int64(now)}),
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

/** SQL expression: as many zeros as the text has bytes. */
function filler(column: string): Statement {
  return raw(`SUBSTR('${'0'.repeat(MAX_NAME_BYTES)}', 1, OCTET_LENGTH(${column}))`)
}

/**
 * Runs one bounded round for each customer that is due.
 * @param clock the current time, where `now` is another one; a customer whose next round lies later than any delay could
 *   have put it is due as well, because the clock was set back
 */
export async function eraseRound(db: Database, now: number, clock = now): Promise<void> {
  const latest = clock + WAIT_MS + CLOCKS_DIFFER_MS
  const [due = []] = await db.batch([
    sql`SELECT customer_id, ledger_id FROM erasures
      WHERE next_at <= ${int64(now)} OR next_at > ${int64(latest)}
      ORDER BY next_at, customer_id LIMIT ${CUSTOMERS_OF_A_ROUND}`,
  ])
  for (const row of due) {
    const [customerId, ledgerId] = [textOf(row, 'customer_id'), textOf(row, 'ledger_id')]
    // Separate transactions, so that requests run in between.
    const waitMs = await eraseSome(db, customerId, ledgerId)
    await db.batch([
      sql`UPDATE erasures SET next_at = ${int64(now + waitMs)} WHERE customer_id = ${customerId}`,
    ])
  }
}

/** Erases the next part of a customer's data. @returns the delay before the part after it, ms */
async function eraseSome(db: Database, customerId: string, ledgerId: string): Promise<number> {
  const receiptsLeft = await eraseReceipts(db, customerId, ledgerId)
  if (receiptsLeft) return 0
  const [open = []] = await db.batch([
    sql`SELECT COUNT(*) AS count FROM reservations WHERE customer_id = ${customerId}`,
  ])
  if (open[0] !== undefined && numberOf(open[0], 'count') > 0) return WAIT_MS
  const [blocks = []] = await db.batch([deleteBlocks(customerId)])
  if (blocks.length > 0) return 0
  const [moved = []] = await db.batch([moveLedger(customerId, ledgerId)])
  if (moved.length > 0) return 0
  // A query may be storing a block of totals that it added up before the rows were moved; it holds this lock meanwhile. This
  // batch waits for it, because on PostgreSQL the last step deletes only blocks that were there when that step began.
  await db.batch([lockCustomer(customerId)])
  const quarantined = await withoutCustomer(db, customerId, ledgerId)
  await db.batch(finish(customerId, ledgerId, quarantined))
  return 0
}

/**
 * Empties the receipts whose bodies an earlier round overwrote, then overwrites the next bodies at their own length, so that
 * none of their bytes stay in the file. The receipts are found through the customer's ledger rows, in the order of their
 * numbers: in a database made by a release with `sqlite-0000-receipts-by-id`, the primary key of `receipts` begins with the
 * receipt's id and not with the customer's.
 * @returns whether receipts are left
 */
async function eraseReceipts(db: Database, customerId: string, ledgerId: string): Promise<boolean> {
  const overwritten = await nextRows(db, customerId)
  if (overwritten === undefined) return false
  await db.batch(emptyReceipts(overwritten, ledgerId))
  const next = await nextRows(db, customerId)
  if (next !== undefined) await overwriteBodies(db, receiptOf(next))
  return next !== undefined
}

/** A range of a customer's ledger rows. */
interface LedgerRows {
  readonly customerId: string
  /** The range by sequence number: `after` is excluded, `through` is included. */
  readonly after: number
  readonly through: number
}

/** The first rows whose receipts are not emptied yet. */
async function nextRows(db: Database, customerId: string): Promise<LedgerRows | undefined> {
  const after = sql`(SELECT emptied_through FROM erasures WHERE customer_id = ${customerId})`
  const [rows = []] = await db.batch([
    sql`SELECT ${after} AS emptied, MAX(seq) AS through FROM (SELECT seq FROM usage
      WHERE customer_id = ${customerId} AND seq > ${after} ORDER BY seq LIMIT ${RECEIPTS_OF_A_ROUND}) AS following`,
  ])
  const [row] = rows
  if (row === undefined || row['through'] === null) return undefined
  return { customerId, after: numberOf(row, 'emptied'), through: numberOf(row, 'through') }
}

/** SQL condition: the ledger row is in the range. */
function among({ customerId, after, through }: LedgerRows): Statement {
  return sql`usage.customer_id = ${customerId} AND seq > ${int64(after)} AND seq <= ${int64(through)}`
}

/** SQL condition: the receipt belongs to a ledger row in the range. */
function receiptOf(rows: LedgerRows): Statement {
  return sql`receipts.customer_id = ${rows.customerId} AND receipts.receipt_id IN (
    SELECT receipt_id FROM usage WHERE ${among(rows)})`
}

/**
 * Clears the content of the receipts and keeps their rows, under the ledger's id and named after the number of their ledger
 * row. If the rows were deleted, SQLite would merge their pages and copy the receipts of other customers, and a later
 * erasure could not overwrite those copies.
 */
function emptyReceipts(rows: LedgerRows, ledgerId: string): readonly Statement[] {
  const { customerId, through } = rows
  return [
    sql`UPDATE receipts SET customer_id = ${ledgerId}, receipt_id = emptied.number,
        jws = NULL, body_state = 2, sha256 = '', kid = '', evidence_refs = '[]', model = '',
        provider = '', prompt_tokens = 0, completion_tokens = 0, created_at = 0, expires_at = 0
      FROM (SELECT receipt_id AS former, 'row-' || CAST(seq AS TEXT) AS number FROM usage
        WHERE ${among(rows)}) AS emptied
      WHERE receipts.customer_id = ${customerId} AND receipts.receipt_id = emptied.former AND body_state > 0`,
    sql`UPDATE erasures SET emptied_through = ${int64(through)} WHERE customer_id = ${customerId}
      AND NOT EXISTS (SELECT 1 FROM receipts WHERE ${receiptOf(rows)})`,
  ]
}

/** Deletes the customer's blocks of totals, because they name keys. */
function deleteBlocks(customerId: string): Statement {
  const own = sql`customer_id = ${customerId}`
  return sql`DELETE FROM usage_blocks WHERE ${own} AND (row_count, first_seq) IN (
      SELECT row_count, first_seq FROM usage_blocks WHERE ${own}
      ORDER BY row_count, first_seq LIMIT ${BLOCKS_OF_A_ROUND})
    RETURNING first_seq`
}

/** Moves ledger rows whose receipts are emptied to the new id, and clears their key and receipt. */
function moveLedger(customerId: string, ledgerId: string): Statement {
  return sql`UPDATE usage SET customer_id = ${ledgerId}, key_prefix = '', receipt_id = NULL
    WHERE customer_id = ${customerId} AND seq IN (SELECT seq FROM usage
      WHERE customer_id = ${customerId} AND seq <= (
        SELECT emptied_through FROM erasures WHERE customer_id = ${customerId})
      ORDER BY seq LIMIT ${ROWS_OF_A_ROUND})
    RETURNING id`
}

/**
 * Small tables of the customer, and blocks of totals that a concurrent query stored; deleted in one transaction after
 * everything else.
 */
const OWN_TABLES = ['evidence', 'idempotent_requests', 'webhook_events', 'usage_blocks'] as const

/** Changes nothing while rows are left, or when a settlement was quarantined since `quarantined` was read. */
function finish(
  customerId: string,
  ledgerId: string,
  quarantined: Awaited<ReturnType<typeof withoutCustomer>>,
): readonly Statement[] {
  const own = sql`customer_id = ${customerId}`
  const done = sql`EXISTS (SELECT 1 FROM customers WHERE customers.customer_id = ${ledgerId})`
  const left = ['usage', 'reservations'].map(
    (table) => sql`NOT EXISTS (SELECT 1 FROM ${raw(table)} WHERE ${own})`,
  )
  const allRead = sql`(SELECT COUNT(*) FROM quarantined_settlements WHERE ${own}) = ${raw(String(quarantined.length))}`
  const nothingLeft = left.reduce((one, other) => sql`${one} AND ${other}`, allRead)
  return [
    lockCustomer(customerId),
    sql`UPDATE customers SET customer_id = ${ledgerId}, name = '' WHERE ${own} AND ${nothingLeft}`,
    sql`UPDATE credits SET customer_id = ${ledgerId} WHERE ${own} AND ${done}`,
    ...quarantined.map(
      ({ requestId, settlement }) => sql`UPDATE quarantined_settlements
        SET customer_id = ${ledgerId}, settlement = ${settlement}
        WHERE request_id = ${requestId} AND ${own} AND ${done}`,
    ),
    sql`DELETE FROM webhook_deliveries WHERE ${done} AND event_id IN (
      SELECT id FROM webhook_events WHERE ${own})`,
    ...OWN_TABLES.map((table) => sql`DELETE FROM ${raw(table)} WHERE ${own} AND ${done}`),
    sql`INSERT INTO directory_customers (customer_id, created_at)
      SELECT customer_id, created_at FROM customers WHERE customer_id = ${ledgerId}
      ON CONFLICT (customer_id) DO NOTHING`,
    sql`DELETE FROM erasures WHERE ${own} AND ${done}`,
  ]
}
