import type { SyncStore } from '../storage/sync-store.ts'
import type { Account, AccountKey } from './account.ts'
import type { Accounts } from './accounts.ts'
import { rowDelete, rowInsert, rowUpdate, type RowValues } from './row-statements.ts'
import type { Bill } from './settlement.ts'

// Amounts are passed as text, because they may exceed 2^53; SQLite converts them exactly.
const insertUsage = rowInsert(
  'usage',
  `id, customer_id, seq, created_at, key_prefix, model, modality, provider, region, billing_unit,
  audio_seconds, prompt_tokens, completion_tokens, cost_nano, discount_pct, usd_eur, receipt_id,
  failover, capped`,
)

const insertReceipts = rowInsert(
  'receipts',
  `customer_id, receipt_id, jws, sha256, kid, evidence_refs, model, provider, prompt_tokens,
  completion_tokens, created_at, expires_at`,
)

const INSERT_EVENT = `INSERT INTO webhook_events (id, type, customer_id, subject, amount_nano,
  limit_nano, created_at) VALUES (${questions(7)}) ON CONFLICT (id) DO NOTHING`

const updateCustomers = rowUpdate(
  'customers',
  'balance_nano, reserved_nano, usage_count, last_usage_at',
  'customer_id',
)

const updateKeys = rowUpdate(
  'api_keys',
  'spent_nano, spent_at, window_started_at, window_requests, window_tokens',
  'customer_id, key_prefix',
)

const insertReservations = rowInsert(
  'reservations',
  'request_id, customer_id, key_prefix, amount_nano, created_at, expires_at',
)

const deleteReservations = rowDelete('reservations', 'request_id')

const UPDATE_EVIDENCE = `UPDATE evidence SET expires_at = ?
  WHERE customer_id = ? AND sha256 = ? AND expires_at < ?`

/** Writes all changes of the memory to the tables. Runs in the transaction that also empties the journal. */
export function writeTables(store: Store, { changed }: Accounts, bills: readonly Bill[]): void {
  writeBills(store, bills)
  writeAccounts(store, [...changed.accounts])
  updateKeys(
    store,
    [...changed.keys].map(([key, { customerId }]) => keyRow(customerId, key)),
  )
  for (const { customerId, sha256, expiresAt } of changed.evidence.values()) {
    store.run(UPDATE_EVIDENCE, [expiresAt, customerId, sha256, expiresAt])
  }
}

type Store = Pick<SyncStore, 'run'>

function writeBills(store: Store, bills: readonly Bill[]): void {
  insertUsage(store, bills.map(usageRow))
  insertReceipts(store, bills.flatMap(receiptRow))
  for (const { entry, events } of bills) {
    for (const { id, type, subject, amount, limit } of events) {
      const amounts = [amount.toString(), limit.toString()]
      const { customerId, usage } = entry
      store.run(INSERT_EVENT, [id, type, customerId, subject, ...amounts, usage.createdAtMs])
    }
  }
}

function usageRow({ entry, seq, createdAt }: Bill): RowValues {
  const { requestId, customerId, keyPrefix, usage, receipt } = entry
  return [
    requestId,
    customerId,
    seq,
    createdAt,
    keyPrefix,
    usage.model,
    usage.modality,
    usage.provider,
    usage.region,
    usage.billingUnit,
    usage.audioSeconds,
    usage.promptTokens,
    usage.completionTokens,
    usage.costNano,
    usage.discountPct,
    usage.usdEur,
    receipt?.id ?? null,
    usage.failover ? 1 : 0,
    usage.capped ? 1 : 0,
  ]
}

/** The row of the bill's receipt; none where it has no receipt. */
function receiptRow({ entry, createdAt }: Bill): readonly RowValues[] {
  const { customerId, usage, receipt } = entry
  if (receipt === null) return []
  const row = [
    customerId,
    receipt.id,
    receipt.jws,
    receipt.sha256,
    receipt.kid,
    JSON.stringify(receipt.evidenceRefs),
    usage.model,
    usage.provider,
    usage.promptTokens,
    usage.completionTokens,
    createdAt,
    receipt.expiresAtMs,
  ]
  return [row]
}

function writeAccounts(store: Store, accounts: readonly Account[]): void {
  updateCustomers(store, accounts.map(customerRow))
  deleteReservations(
    store,
    accounts.flatMap(({ ended }) => [...ended].map((requestId) => [requestId])),
  )
  insertReservations(store, accounts.flatMap(newReservationRows))
}

function customerRow(account: Account): RowValues {
  const { customerId, balance, reserved, usageCount, lastUsageAt } = account
  return [balance.toString(), reserved.toString(), usageCount, lastUsageAt, customerId]
}

/** The rows of open reservations that are not in the table yet. */
function newReservationRows({ customerId, open }: Account): readonly RowValues[] {
  const rows: RowValues[] = []
  for (const [requestId, reservation] of open) {
    if (reservation.stored) continue
    const { keyPrefix, amount, createdAt, expiresAt } = reservation
    rows.push([requestId, customerId, keyPrefix, amount.toString(), createdAt, expiresAt])
  }
  return rows
}

function keyRow(customerId: string, key: AccountKey): RowValues {
  const { keyPrefix, spentNano, spentAt, windowStartedAt, windowRequests, windowTokens } = key
  const window = [windowStartedAt, windowRequests, windowTokens]
  return [spentNano.toString(), spentAt, ...window, customerId, keyPrefix]
}

function questions(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ')
}
