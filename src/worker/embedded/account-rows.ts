import { LIMIT_RESETS } from '../settle/key-limits.ts'
import type { Row } from '../storage/database.ts'
import {
  bigintOf,
  numberOf,
  optionalBigintOf,
  optionalNumberOf,
  optionalTextOf,
  textOf,
} from '../storage/row.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import type { Account, AccountKey, Reservation } from './account.ts'

/** Reads accounts from the tables. */

type Tables = Pick<SyncStore, 'run'>

const READ_CUSTOMER = `SELECT name, plan, billing, CAST(balance_nano AS TEXT) AS balance,
  CAST(reserved_nano AS TEXT) AS reserved, receipt_retention_days, usage_count, last_usage_at,
  suspended_at, CAST(alert_balance_nano AS TEXT) AS alert_balance, alert_key_limit_pct
  FROM customers WHERE customer_id = ?`

const READ_OPEN = `SELECT request_id, key_prefix, CAST(amount_nano AS TEXT) AS amount, created_at,
  expires_at FROM reservations WHERE customer_id = ?`

const READ_KEY = `SELECT key_hash, name, deleted_at, expires_at, models, min_attestation,
  requests_per_minute, tokens_per_minute, concurrent_requests,
  CAST(limit_nano AS TEXT) AS limit_nano, limit_reset, CAST(spent_nano AS TEXT) AS spent, spent_at,
  window_started_at, window_requests, window_tokens
  FROM api_keys WHERE customer_id = ? AND key_prefix = ?`

const READ_FORMER = `SELECT key_hash, ends_at FROM rotated_keys
  WHERE customer_id = ? AND key_prefix = ?`

const READ_EVIDENCE = 'SELECT sha256, expires_at FROM evidence WHERE customer_id = ?'

/**
 * A customer's account with its open reservations but without its keys, which `readAccountKey` reads; undefined: there is no
 * such customer.
 */
export function readAccount(tables: Tables, customerId: string): Account | undefined {
  const [row] = tables.run(READ_CUSTOMER, [customerId]).rows
  return row && accountOf(customerId, row, tables.run(READ_OPEN, [customerId]).rows)
}

/** A key, deleted or not, with its former secrets; undefined: there is no such key. */
export function readAccountKey(
  tables: Tables,
  customerId: string,
  keyPrefix: string,
): AccountKey | undefined {
  const params = [customerId, keyPrefix]
  const [row] = tables.run(READ_KEY, params).rows
  return row && keyOf(keyPrefix, row, tables.run(READ_FORMER, params).rows)
}

/** Until when each piece of a customer's evidence is kept, ms, by its SHA-256. */
export function readEvidence(tables: Tables, customerId: string): Map<string, number> {
  const { rows } = tables.run(READ_EVIDENCE, [customerId])
  return new Map(rows.map((row) => [textOf(row, 'sha256'), numberOf(row, 'expires_at')]))
}

function accountOf(customerId: string, row: Row, open: readonly Row[]): Account {
  return {
    customerId,
    name: textOf(row, 'name'),
    plan: textOf(row, 'plan'),
    prepaid: textOf(row, 'billing') === 'prepaid',
    receiptRetentionDays: optionalNumberOf(row, 'receipt_retention_days'),
    suspended: row['suspended_at'] !== null,
    alertBalanceNano: optionalBigintOf(row, 'alert_balance'),
    alertKeyLimitPct: optionalNumberOf(row, 'alert_key_limit_pct'),
    balance: bigintOf(row, 'balance'),
    reserved: bigintOf(row, 'reserved'),
    usageCount: numberOf(row, 'usage_count'),
    lastUsageAt: numberOf(row, 'last_usage_at'),
    keys: new Map(),
    open: new Map(open.map((one) => [textOf(one, 'request_id'), reservationOf(one)])),
    ended: new Set(),
    evidence: undefined,
  }
}

function reservationOf(row: Row): Reservation {
  return {
    keyPrefix: textOf(row, 'key_prefix'),
    amount: bigintOf(row, 'amount'),
    createdAt: numberOf(row, 'created_at'),
    expiresAt: numberOf(row, 'expires_at'),
    surelyNew: false,
    stored: true,
  }
}

function keyOf(keyPrefix: string, row: Row, former: readonly Row[]): AccountKey {
  return {
    keyPrefix,
    keyHash: textOf(row, 'key_hash'),
    name: textOf(row, 'name'),
    deleted: row['deleted_at'] !== null,
    expiresAt: optionalNumberOf(row, 'expires_at'),
    models: optionalTextOf(row, 'models'),
    minAttestation: optionalTextOf(row, 'min_attestation'),
    requestsPerMinute: optionalNumberOf(row, 'requests_per_minute'),
    tokensPerMinute: optionalNumberOf(row, 'tokens_per_minute'),
    concurrentRequests: optionalNumberOf(row, 'concurrent_requests'),
    limitNano: optionalBigintOf(row, 'limit_nano'),
    limitReset: LIMIT_RESETS.find((name) => name === row['limit_reset']) ?? 'none',
    formerSecrets: new Map(
      former.map((one) => [textOf(one, 'key_hash'), numberOf(one, 'ends_at')]),
    ),
    spentNano: bigintOf(row, 'spent'),
    spentAt: numberOf(row, 'spent_at'),
    windowStartedAt: numberOf(row, 'window_started_at'),
    windowRequests: numberOf(row, 'window_requests'),
    windowTokens: numberOf(row, 'window_tokens'),
  }
}
