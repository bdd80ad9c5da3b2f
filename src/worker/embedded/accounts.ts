import { LIMIT_RESETS } from '../settle/key-limits.ts'
import type { Row } from '../storage/database.ts'
import type { HeldReservation } from '../storage/ledger-engine.ts'
import { bigintOf, numberOf, optionalNumberOf, optionalTextOf, textOf } from '../storage/row.ts'
import type { SettlementEntry } from '../storage/ledger-operations.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import type { Account, AccountKey, Reservation } from './account.ts'
import { RecentlySettled } from './recently-settled.ts'

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

const READ_LATEST_USAGE = 'SELECT MAX(last_usage_at) AS latest FROM customers'

const READ_HOLDER = 'SELECT customer_id FROM reservations WHERE request_id = ?'

const READ_EVIDENCE = 'SELECT sha256, expires_at FROM evidence WHERE customer_id = ?'

/** Until when a piece of evidence is kept, ms. */
export interface EvidenceRetention {
  readonly customerId: string
  readonly sha256: string
  readonly expiresAt: number
}

/** The accounts that were needed since others last wrote to the tables, each read at its first use. */
export class Accounts {
  readonly #store: Pick<SyncStore, 'run'>
  readonly #known = new Map<string, Account>()
  readonly #holders = new Map<string, Account>()
  /** Whose rows in the tables differ. */
  readonly changed = {
    accounts: new Set<Account>(),
    keys: new Map<AccountKey, Account>(),
    evidence: new Map<string, EvidenceRetention>(),
  }

  #settled: RecentlySettled | undefined

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  /** Whether the request of a settlement was certainly not settled before. */
  isSurelyNew({ requestId }: SettlementEntry): boolean {
    return this.#holders.get(requestId)?.open.get(requestId)?.surelyNew === true
  }

  noteSettled({ requestId, usage }: SettlementEntry): void {
    this.settled.add(requestId, usage.createdAtMs)
  }

  /** The requests that were settled lately. */
  get settled(): RecentlySettled {
    const [row] = this.#settled === undefined ? this.#read(READ_LATEST_USAGE) : []
    this.#settled ??= new RecentlySettled((row && optionalNumberOf(row, 'latest')) ?? 0)
    return this.#settled
  }

  get size(): number {
    return this.#known.size
  }

  /** Whether all that an admission of a key needs was read. */
  knowsKey(customerId: string, keyPrefix: string): boolean {
    const isKnown = this.#known.get(customerId)?.keys.has(keyPrefix) === true
    return isKnown && this.#settled !== undefined
  }

  /** The open reservations of the accounts that were read. */
  held(): readonly HeldReservation[] {
    return [...this.#known.values()].flatMap(({ customerId, open }) =>
      Array.from(open, ([requestId, { keyPrefix, amount, createdAt, expiresAt }]) => {
        return { requestId, customerId, keyPrefix, amount, createdAt, expiresAt }
      }),
    )
  }

  find(customerId: string): Account | undefined {
    const known = this.#known.get(customerId)
    if (known !== undefined) return known
    const [row] = this.#read(READ_CUSTOMER, customerId)
    if (row === undefined) return undefined
    const account = accountOf(customerId, row, this.#read(READ_OPEN, customerId))
    this.#known.set(customerId, account)
    for (const requestId of account.open.keys()) this.#holders.set(requestId, account)
    return account
  }

  keyOf({ customerId, keys }: Account, keyPrefix: string): AccountKey | undefined {
    const known = keys.get(keyPrefix)
    if (known !== undefined) return known
    const [row] = this.#read(READ_KEY, customerId, keyPrefix)
    if (row === undefined) return undefined
    const key = keyOf(keyPrefix, row, this.#read(READ_FORMER, customerId, keyPrefix))
    keys.set(keyPrefix, key)
    return key
  }

  /** Of the accounts that were read, the one that has a reservation of this request. */
  knownHolderOf(requestId: string): Account | undefined {
    return this.#holders.get(requestId)
  }

  /** The account that has a reservation of this request. */
  holderOf(requestId: string): Account | undefined {
    const known = this.#holders.get(requestId)
    if (known !== undefined) return known
    const [row] = this.#read(READ_HOLDER, requestId)
    if (row !== undefined) this.find(textOf(row, 'customer_id'))
    return this.#holders.get(requestId)
  }

  evidenceOf(account: Account): Map<string, number> {
    account.evidence ??= new Map(
      this.#read(READ_EVIDENCE, account.customerId).map((row) => [
        textOf(row, 'sha256'),
        numberOf(row, 'expires_at'),
      ]),
    )
    return account.evidence
  }

  /** Records that the tables have a piece of evidence until this time, or longer. */
  noteEvidence({ customerId, sha256, expiresAt }: EvidenceRetention): void {
    const stored = this.#known.get(customerId)?.evidence
    // Where the customer's evidence was not read yet, it will be.
    stored?.set(sha256, Math.max(expiresAt, stored.get(sha256) ?? 0))
  }

  reserve(account: Account, requestId: string, reservation: Reservation): void {
    account.open.set(requestId, reservation)
    account.reserved += reservation.amount
    // Where the table still has an earlier one of the request, the fold removes that before it adds this one.
    if (reservation.stored) account.ended.delete(requestId)
    this.#holders.set(requestId, account)
    this.changed.accounts.add(account)
  }

  /** Ends a request's reservation; undefined: it has none. */
  endReservation(account: Account, requestId: string): Reservation | undefined {
    const reservation = account.open.get(requestId)
    if (reservation === undefined) return undefined
    account.open.delete(requestId)
    account.reserved -= reservation.amount
    if (reservation.stored) account.ended.add(requestId)
    this.#holders.delete(requestId)
    this.changed.accounts.add(account)
    return reservation
  }

  get isChanged(): boolean {
    const { accounts, keys, evidence } = this.changed
    return accounts.size > 0 || keys.size > 0 || evidence.size > 0
  }

  /** Records that the tables agree with the memory. */
  written(): void {
    for (const { open, ended } of this.changed.accounts) {
      for (const reservation of open.values()) reservation.stored = true
      ended.clear()
    }
    this.changed.accounts.clear()
    this.changed.keys.clear()
    this.changed.evidence.clear()
  }

  /** Forgets everything. The tables must agree with the memory. */
  forgetAll(): void {
    this.#known.clear()
    this.#holders.clear()
  }

  /** Forgets the accounts that were read first. The tables must agree with the memory. */
  forgetEarliest(count: number): void {
    const earliest = Array.from(this.#known.keys()).slice(0, count)
    for (const customerId of earliest) this.forget(customerId)
  }

  /** Forgets one account, where it is known. The tables must agree with the memory. */
  forget(customerId: string): void {
    const account = this.#known.get(customerId)
    if (account === undefined) return
    this.#known.delete(customerId)
    for (const requestId of account.open.keys()) this.#holders.delete(requestId)
  }

  #read(sql: string, ...params: readonly string[]): readonly Row[] {
    return this.#store.run(sql, params).rows
  }
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

function optionalBigintOf(row: Row, column: string): bigint | null {
  return row[column] === null ? null : bigintOf(row, column)
}
