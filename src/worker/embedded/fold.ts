import type { SyncStore } from '../storage/sync-store.ts'
import type { Account, AccountKey } from './account.ts'
import type { Accounts } from './accounts.ts'
import { rowInsert, type InsertedRow } from './row-insert.ts'
import type { Bill } from './settlement.ts'

/** Columns that are given as text hold integers beyond 2^53; SQLite converts them exactly. */
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

const UPDATE_CUSTOMER = `UPDATE customers SET balance_nano = ?, reserved_nano = ?, usage_count = ?,
  last_usage_at = ? WHERE customer_id = ?`

const UPDATE_KEY = `UPDATE api_keys SET spent_nano = ?, spent_at = ?, window_started_at = ?,
  window_requests = ?, window_tokens = ? WHERE customer_id = ? AND key_prefix = ?`

const INSERT_RESERVATION = `INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano,
  created_at, expires_at) VALUES (${questions(6)})`

const DELETE_RESERVATION = 'DELETE FROM reservations WHERE request_id = ?'

const UPDATE_EVIDENCE = `UPDATE evidence SET expires_at = ?
  WHERE customer_id = ? AND sha256 = ? AND expires_at < ?`

/** Brings the tables up to what the memory holds. Runs in a transaction, together with the emptying of the journal. */
export function writeTables(store: Store, { changed }: Accounts, bills: readonly Bill[]): void {
  writeBills(store, bills)
  for (const account of changed.accounts) writeAccount(store, account)
  for (const [key, { customerId }] of changed.keys) writeKey(store, customerId, key)
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

function usageRow({ entry, seq, createdAt }: Bill): InsertedRow {
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

/** The row of a bill that has a receipt. */
function receiptRow({ entry, createdAt }: Bill): readonly InsertedRow[] {
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

function writeAccount(store: Store, account: Account): void {
  const { customerId, balance, reserved, usageCount, lastUsageAt } = account
  const amounts = [balance.toString(), reserved.toString()]
  store.run(UPDATE_CUSTOMER, [...amounts, usageCount, lastUsageAt, customerId])
  for (const requestId of account.ended) store.run(DELETE_RESERVATION, [requestId])
  for (const [requestId, reservation] of account.open) {
    if (reservation.stored) continue
    const { keyPrefix, amount, createdAt, expiresAt } = reservation
    const row = [requestId, customerId, keyPrefix, amount.toString(), createdAt, expiresAt]
    store.run(INSERT_RESERVATION, row)
  }
}

function writeKey(store: Store, customerId: string, key: AccountKey): void {
  const { keyPrefix, spentNano, spentAt, windowStartedAt, windowRequests, windowTokens } = key
  const window = [windowStartedAt, windowRequests, windowTokens]
  store.run(UPDATE_KEY, [spentNano.toString(), spentAt, ...window, customerId, keyPrefix])
}

function questions(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ')
}
