import type { RouterConfig } from '../../src/protocol/config.ts'
import type { PresentedKey } from '../../src/worker/auth/api-key.ts'
import { ApiError } from '../../src/worker/http/errors.ts'
import type { AdmissionRequest } from '../../src/worker/settle/admit.ts'
import type { Settlement, UsageEntry } from '../../src/worker/settle/ledger.ts'
import type { Database, Row, Statement } from '../../src/worker/storage/database.ts'
import type { Claim, StoredReceipt } from '../../src/worker/storage/ledger-operations.ts'
import { bigintOf, numberOf } from '../../src/worker/storage/row.ts'
import { int64, sql } from '../../src/worker/storage/sql.ts'

/** The moment at which ledger tests begin. */
export const NOW = Date.parse('2026-11-20T12:00:00.000Z')

export interface NewCustomer {
  readonly id?: string
  readonly billing?: 'prepaid' | 'postpaid'
  readonly balance?: bigint
  readonly plan?: string
  readonly retentionDays?: number
}

/** A customer with an opening credit and one key `<id>_k1`; answers the key as presented. */
export async function addCustomer(db: Database, customer: NewCustomer = {}): Promise<PresentedKey> {
  const { id = 'acme', billing = 'prepaid', balance = 0n, plan = 'standard' } = customer
  const days = customer.retentionDays ?? null
  await db.batch([
    sql`INSERT INTO customers (customer_id, name, plan, billing, balance_nano,
      receipt_retention_days, created_at)
      VALUES (${id}, ${id}, ${plan}, ${billing}, ${int64(balance)}, ${days}, ${NOW})`,
    sql`INSERT INTO credits (customer_id, reference, amount_nano, created_at)
      VALUES (${id}, 'opening', ${int64(balance)}, ${NOW})`,
  ])
  return addKey(db, id, 'k1')
}

export async function addKey(db: Database, customerId: string, key: string): Promise<PresentedKey> {
  const keyPrefix = `cmr_${customerId}_${key}`
  const keyHash = `hash of ${keyPrefix}`
  await db.batch([
    sql`INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
      VALUES (${customerId}, ${keyPrefix}, ${keyHash}, ${`name of ${key}`}, ${NOW})`,
  ])
  return { customerId, keyPrefix, keyHash }
}

export async function deleteKey(db: Database, key: PresentedKey): Promise<void> {
  await db.batch([
    sql`UPDATE api_keys SET deleted_at = ${NOW} WHERE customer_id = ${key.customerId}
      AND key_prefix = ${key.keyPrefix}`,
  ])
}

export type Plans = RouterConfig['plans']

export function askOf(
  key: PresentedKey,
  requestId: string,
  more: Partial<AdmissionRequest> & { readonly nano?: bigint } = {},
): AdmissionRequest {
  const { nano = 0n, ...rest } = more
  const now = more.now ?? NOW
  return {
    requestId,
    key,
    plans: {},
    reserveNano: (discountPct) => (nano * BigInt(100 - discountPct)) / 100n,
    expiresAt: now + 240_000,
    now,
    ...rest,
  }
}

export function settlementOf(
  key: PresentedKey,
  requestId: string,
  more: Partial<UsageEntry> & {
    readonly nano?: bigint
    readonly receipt?: StoredReceipt | null
    readonly claim?: Claim
    readonly answer?: string | null
  } = {},
): Settlement {
  const { nano = 0n, receipt = null, claim, answer = null, ...row } = more
  return {
    requestId,
    admission: { ...key, claim },
    row: {
      model: 'nova/glm-5',
      modality: 'chat',
      provider: 'nova',
      region: 'eu',
      audioSeconds: null,
      promptTokens: 10,
      completionTokens: 5,
      cost: { nano, billingUnit: 'token', discountPct: 0, usdEur: null },
      usageCapped: false,
      failover: false,
      createdAtMs: NOW,
      ...row,
    },
    receipt,
    answer,
  }
}

export function receiptOf(id: string, more: Partial<StoredReceipt> = {}): StoredReceipt {
  const jws = `${'h'.repeat(120)}.${`body of ${id} `.repeat(200)}.${'s'.repeat(86)}`
  const expiresAtMs = NOW + 14 * 86_400_000
  return {
    id,
    jws,
    sha256: `sha256 of ${id}`,
    kid: 'kid-1',
    expiresAtMs,
    evidenceRefs: [],
    ...more,
  }
}

/** A customer's totals in the ledger, which must equal the sums of its rows. */
export interface LedgerTotals {
  readonly balance: bigint
  readonly reserved: bigint
  readonly rows: number
  readonly open: number
}

/** Reads the totals; throws where one differs from the sum of its rows. */
export async function readLedgerTotals(db: Database, customerId = 'acme'): Promise<LedgerTotals> {
  const row = await one(
    db,
    sql`SELECT CAST(balance_nano AS TEXT) AS balance, CAST(reserved_nano AS TEXT) AS reserved,
      usage_count,
      (SELECT COUNT(*) FROM usage u WHERE u.customer_id = c.customer_id) AS usage_rows,
      (SELECT COALESCE(MAX(seq), 0) FROM usage u WHERE u.customer_id = c.customer_id) AS last_seq,
      CAST((SELECT COALESCE(SUM(amount_nano), 0) FROM credits k
        WHERE k.customer_id = c.customer_id) AS TEXT) AS credited,
      CAST((SELECT COALESCE(SUM(cost_nano), 0) FROM usage u
        WHERE u.customer_id = c.customer_id) AS TEXT) AS billed,
      (SELECT COUNT(*) FROM reservations r WHERE r.customer_id = c.customer_id) AS open_rows,
      CAST((SELECT COALESCE(SUM(amount_nano), 0) FROM reservations r
        WHERE r.customer_id = c.customer_id) AS TEXT) AS held
      FROM customers c WHERE customer_id = ${customerId}`,
  )
  const totals = {
    balance: bigintOf(row, 'balance'),
    reserved: bigintOf(row, 'reserved'),
    rows: numberOf(row, 'usage_rows'),
    open: numberOf(row, 'open_rows'),
  }
  if (totals.balance !== bigintOf(row, 'credited') - bigintOf(row, 'billed')) {
    throw new Error('the balance is not what was credited less what was billed')
  }
  if (totals.reserved !== bigintOf(row, 'held')) {
    throw new Error('what is reserved is not the sum of open reservations')
  }
  if (totals.rows !== numberOf(row, 'usage_count') || totals.rows !== numberOf(row, 'last_seq')) {
    throw new Error('the rows are not numbered without a gap')
  }
  return totals
}

/** The first row of a statement that must have one. */
export async function one(db: Database, statement: Statement): Promise<Row> {
  const [rows = []] = await db.batch([statement])
  if (!rows[0]) throw new Error('no row')
  return rows[0]
}

/** The `ApiError` that a promise is rejected with, as a client would see it. */
export async function rejectionOf(promise: Promise<unknown>): Promise<ApiError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

/** How many were fulfilled. */
export function fulfilled(ends: readonly PromiseSettledResult<unknown>[]): number {
  return ends.filter(({ status }) => status === 'fulfilled').length
}

/** The codes of those that were refused, each once. */
export function refusals(ends: readonly PromiseSettledResult<unknown>[]): readonly unknown[] {
  const codes = ends.flatMap((end) =>
    end.status === 'rejected' && end.reason instanceof ApiError ? [end.reason.code] : [],
  )
  return [...new Set(codes)]
}
