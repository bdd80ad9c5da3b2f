import type { z } from 'zod'
import { formatNano } from '../../protocol/money.ts'
import { ApiError } from '../http/errors.ts'
import { eurText } from '../settle/key-view.ts'
import { IS_PRESENT } from '../settle/present-customer.ts'
import { StatementRefused } from '../storage/batch-outcome.ts'
import type { Database, Row, Statement } from '../storage/database.ts'
import { bigintOf, numberOf, optionalBigintOf, optionalNumberOf, textOf } from '../storage/row.ts'
import { int64, nullableInt64, raw, sql, text } from '../storage/sql.ts'
import type { customerChangesSchema } from './bodies.ts'

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
  /** RFC 3339, like all times; null: not suspended. */
  readonly suspended_at: string | null
  /** When the customer was erased; only its ledger remains, under this id. */
  readonly erased_at: string | null
  /** The operator is notified when the balance falls below this; null: the service's own threshold. */
  readonly alert_balance_eur: string | null
  /** The operator is notified when a key has used this percentage of its limit; null: the service's own threshold. */
  readonly alert_key_limit_pct: number | null
  readonly created_at: string
}

/** The reference of a customer's opening credit. It is empty, so no later credit can have it. */
const OPENING = ''

/** Inserts a new customer with its balance as its first credit. `now` is ms since the epoch. */
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
  if (row === undefined) throw new Error('internal error: the customer was not stored')
  return viewOf(row)
}

/** The customer with this id, or undefined. */
export async function findCustomer(db: Database, id: string): Promise<CustomerView | undefined> {
  const [rows = []] = await db.batch([selectCustomer(id)])
  const [row] = rows
  return row === undefined ? undefined : viewOf(row)
}

/** Maximum balance, nano-EUR: the largest that the column holds, in whole euros. */
const MAX_BALANCE_NANO = 9_000_000_000n * 1_000_000_000n

/**
 * Adds a credit unless the customer already has one with that reference, in one batch.
 * @returns the customer afterwards and whether anything changed; undefined when there is no such customer
 * @throws ApiError `invalid_request_error` when the balance would exceed its maximum
 */
export async function creditCustomer(
  db: Database,
  id: string,
  credit: { readonly amountNano: bigint; readonly reference: string },
  now: number,
): Promise<{ readonly customer: CustomerView; readonly applied: boolean } | undefined> {
  const { amountNano, reference } = credit
  await checkRoom(db, id, credit)
  const statements = [
    sql`UPDATE customers SET balance_nano = balance_nano + ${int64(amountNano)}
      WHERE customer_id = ${id} AND ${LIVE} AND NOT EXISTS (SELECT 1 FROM credits
        WHERE customer_id = ${id} AND reference = ${reference})`,
    sql`INSERT INTO credits (customer_id, reference, amount_nano, created_at)
      SELECT customer_id, ${text(reference)}, ${int64(amountNano)}, ${int64(now)}
      FROM customers WHERE customer_id = ${id} AND ${LIVE}
      ON CONFLICT (customer_id, reference) DO NOTHING RETURNING reference`,
    sql`${selectCustomer(id)} AND ${LIVE}`,
  ]
  const rows = await db.batch(statements).catch(async (error: unknown) => {
    // The credit may exceed the maximum only because of a concurrent credit, so the balance is checked again.
    if (error instanceof StatementRefused) await checkRoom(db, id, credit)
    throw error
  })
  const [, inserted = [], [row] = []] = rows
  return row === undefined ? undefined : { customer: viewOf(row), applied: inserted.length === 1 }
}

/** @throws ApiError `invalid_request_error` when the credit would raise the balance above its maximum */
async function checkRoom(
  db: Database,
  id: string,
  { amountNano, reference }: Parameters<typeof creditCustomer>[2],
): Promise<void> {
  const [rows = []] = await db.batch([
    sql`SELECT 1 FROM customers WHERE customer_id = ${id}
      AND balance_nano > ${int64(MAX_BALANCE_NANO - amountNano)}
      AND NOT EXISTS (SELECT 1 FROM credits
        WHERE customer_id = ${id} AND reference = ${reference})`,
  ])
  if (rows.length === 0) return
  const most = formatNano(MAX_BALANCE_NANO)
  const message = `With this credit the balance would be more than ${most} EUR, the most that it may be.`
  throw new ApiError('invalid_request_error', message, { param: 'amount_eur' })
}

/**
 * Changes a customer; omitted members stay unchanged. Requests in progress continue when it is suspended.
 * @returns the customer afterwards; undefined when there is none, or it was erased
 */
export async function changeCustomer(
  db: Database,
  id: string,
  changes: z.output<typeof customerChangesSchema>,
  now: number,
): Promise<CustomerView | undefined> {
  const rows = await db.batch([
    ...assignments(changes, now).map(
      (assignment) => sql`UPDATE customers SET ${assignment} WHERE customer_id = ${id} AND ${LIVE}`,
    ),
    sql`${selectCustomer(id)} AND ${LIVE}`,
  ])
  const [row] = rows.at(-1) ?? []
  return row === undefined ? undefined : viewOf(row)
}

/** Customers that are not erased. */
export const LIVE = raw('customers.erased_at IS NULL')

function assignments(
  changes: z.output<typeof customerChangesSchema>,
  now: number,
): readonly Statement[] {
  const { name, plan, suspended, alert_balance_eur: balance } = changes
  const numbers = (['receipt_retention_days', 'alert_key_limit_pct'] as const).filter(
    (column) => changes[column] !== undefined,
  )
  return [
    ...(name === undefined ? [] : [sql`name = ${name}`]),
    ...(plan === undefined ? [] : [sql`plan = ${plan}`]),
    ...numbers.map((column) => sql`${raw(column)} = ${changes[column] ?? null}`),
    ...(balance === undefined ? [] : [sql`alert_balance_nano = ${nullableInt64(balance)}`]),
    ...(suspended === undefined ? [] : [suspension(suspended, now)]),
  ]
}

/** A customer that is already suspended keeps its original suspension time. */
function suspension(suspended: boolean, now: number): Statement {
  return suspended
    ? sql`suspended_at = COALESCE(suspended_at, ${int64(now)})`
    : sql`suspended_at = NULL`
}

function selectCustomer(id: string): Statement {
  return sql`SELECT customer_id, name, plan, billing, receipt_retention_days, created_at,
      suspended_at, erased_at, alert_key_limit_pct,
      CAST(alert_balance_nano AS TEXT) AS alert_balance_nano,
      CAST(balance_nano AS TEXT) AS balance_nano, CAST(reserved_nano AS TEXT) AS reserved_nano
    FROM customers WHERE customer_id = ${id} AND ${IS_PRESENT}`
}

function viewOf(row: Row): CustomerView {
  const alertBalance = optionalBigintOf(row, 'alert_balance_nano')
  return {
    id: textOf(row, 'customer_id'),
    name: textOf(row, 'name'),
    plan: textOf(row, 'plan'),
    billing: textOf(row, 'billing'),
    balance_eur: eurText(bigintOf(row, 'balance_nano')),
    reserved_eur: eurText(bigintOf(row, 'reserved_nano')),
    receipt_retention_days: optionalNumberOf(row, 'receipt_retention_days'),
    suspended_at: timeOf(row, 'suspended_at'),
    erased_at: timeOf(row, 'erased_at'),
    alert_balance_eur: alertBalance === null ? null : eurText(alertBalance),
    alert_key_limit_pct: optionalNumberOf(row, 'alert_key_limit_pct'),
    created_at: new Date(numberOf(row, 'created_at')).toISOString(),
  }
}

function timeOf(row: Row, column: string): string | null {
  const time = optionalNumberOf(row, column)
  return time === null ? null : new Date(time).toISOString()
}
