import { eurText } from '../settle/key-view.ts'
import type { Database, Row, Statement } from '../storage/database.ts'
import { bigintOf, numberOf, optionalNumberOf, textOf } from '../storage/row.ts'
import { int64, sql, text } from '../storage/sql.ts'

export interface NewCustomer {
  readonly name: string
  readonly plan: string
  readonly billing: 'prepaid' | 'postpaid'
  readonly balanceNano: bigint
  /** Null: the service's default. */
  readonly receiptRetentionDays: number | null
}

/** A customer as the admin interface shows it; money as decimal text. */
export interface CustomerView {
  readonly id: string
  readonly name: string
  readonly plan: string
  readonly billing: string
  readonly balance_eur: string
  readonly reserved_eur: string
  readonly receipt_retention_days: number | null
  /** RFC 3339. */
  readonly created_at: string
}

/** The reference of the credit that a customer begins with: empty, which no later credit can be. */
const OPENING = ''

/** Writes a new customer, its balance as its first credit. `now` is ms since the epoch. */
export async function insertCustomer(
  db: Database,
  id: string,
  customer: NewCustomer,
  now: number,
): Promise<CustomerView> {
  const { name, plan, billing, balanceNano, receiptRetentionDays } = customer
  const rows = await db.batch([
    sql`INSERT INTO customers (customer_id, name, plan, billing, balance_nano,
        receipt_retention_days, created_at)
      VALUES (${id}, ${name}, ${plan}, ${billing}, ${int64(balanceNano)},
        ${receiptRetentionDays}, ${int64(now)})`,
    sql`INSERT INTO credits (customer_id, reference, amount_nano, created_at)
      VALUES (${id}, ${OPENING}, ${int64(balanceNano)}, ${int64(now)})`,
    selectCustomer(id),
  ])
  const [row] = rows.at(-1) ?? []
  if (row === undefined) throw new Error('internal error: the customer was not kept')
  return viewOf(row)
}

/** A customer, or undefined when there is none of that id. */
export async function findCustomer(db: Database, id: string): Promise<CustomerView | undefined> {
  const [rows = []] = await db.batch([selectCustomer(id)])
  const [row] = rows
  return row === undefined ? undefined : viewOf(row)
}

/**
 * Adds a credit unless the customer has one of that reference already, in one batch.
 * @returns the customer afterwards and whether anything changed; undefined when there is no such customer
 */
export async function creditCustomer(
  db: Database,
  id: string,
  credit: { readonly amountNano: bigint; readonly reference: string },
  now: number,
): Promise<{ readonly customer: CustomerView; readonly applied: boolean } | undefined> {
  const { amountNano, reference } = credit
  const rows = await db.batch([
    sql`UPDATE customers SET balance_nano = balance_nano + ${int64(amountNano)}
      WHERE customer_id = ${id} AND NOT EXISTS (SELECT 1 FROM credits
        WHERE customer_id = ${id} AND reference = ${reference})`,
    sql`INSERT INTO credits (customer_id, reference, amount_nano, created_at)
      SELECT customer_id, ${text(reference)}, ${int64(amountNano)}, ${int64(now)}
      FROM customers WHERE customer_id = ${id}
      ON CONFLICT (customer_id, reference) DO NOTHING RETURNING reference`,
    selectCustomer(id),
  ])
  const [, inserted = [], [row] = []] = rows
  return row === undefined ? undefined : { customer: viewOf(row), applied: inserted.length === 1 }
}

function selectCustomer(id: string): Statement {
  return sql`SELECT customer_id, name, plan, billing, receipt_retention_days, created_at,
      CAST(balance_nano AS TEXT) AS balance_nano, CAST(reserved_nano AS TEXT) AS reserved_nano
    FROM customers WHERE customer_id = ${id}`
}

function viewOf(row: Row): CustomerView {
  return {
    id: textOf(row, 'customer_id'),
    name: textOf(row, 'name'),
    plan: textOf(row, 'plan'),
    billing: textOf(row, 'billing'),
    balance_eur: eurText(bigintOf(row, 'balance_nano')),
    reserved_eur: eurText(bigintOf(row, 'reserved_nano')),
    receipt_retention_days: optionalNumberOf(row, 'receipt_retention_days'),
    created_at: new Date(numberOf(row, 'created_at')).toISOString(),
  }
}
