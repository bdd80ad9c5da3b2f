import type { HeldReservation } from '../storage/ledger-engine.ts'
import { optionalNumberOf, textOf } from '../storage/row.ts'
import type { SettlementEntry } from '../storage/ledger-operations.ts'
import type { SyncStore } from '../storage/sync-store.ts'
import { readAccount, readAccountKey, readEvidence } from './account-rows.ts'
import { heldBy, type Account, type AccountKey, type Reservation } from './account.ts'
import { RecentlySettled } from './recently-settled.ts'

const READ_LATEST_USAGE = 'SELECT MAX(last_usage_at) AS latest FROM customers'

const READ_HOLDER = 'SELECT customer_id FROM reservations WHERE request_id = ?'

/** Until when a piece of evidence is kept, ms. */
export interface EvidenceRetention {
  readonly customerId: string
  readonly sha256: string
  readonly expiresAt: number
}

/**
 * A cache of accounts, each read from the tables at its first use. An account is forgotten when other code writes to its
 * rows.
 */
export class Accounts {
  readonly #store: Pick<SyncStore, 'run'>
  readonly #known = new Map<string, Account>()
  readonly #holders = new Map<string, Account>()
  /** Accounts, keys and evidence that differ from their rows in the tables. */
  readonly changed = {
    accounts: new Set<Account>(),
    keys: new Map<AccountKey, Account>(),
    evidence: new Map<string, EvidenceRetention>(),
  }

  #settled: RecentlySettled | undefined

  constructor(store: Pick<SyncStore, 'run'>) {
    this.#store = store
  }

  /** Whether the request of a settlement is known not to have been settled before. */
  isSurelyNew({ requestId }: SettlementEntry): boolean {
    return this.#holders.get(requestId)?.open.get(requestId)?.surelyNew === true
  }

  noteSettled({ requestId, usage }: SettlementEntry): void {
    this.settled.add(requestId, usage.createdAtMs)
  }

  /** The requests that were settled recently. */
  get settled(): RecentlySettled {
    const [row] = this.#settled === undefined ? this.#store.run(READ_LATEST_USAGE, []).rows : []
    this.#settled ??= new RecentlySettled((row && optionalNumberOf(row, 'latest')) ?? 0)
    return this.#settled
  }

  get size(): number {
    return this.#known.size
  }

  /** Whether everything that an admission of this key needs is in memory. */
  knowsKey(customerId: string, keyPrefix: string): boolean {
    const isKnown = this.#known.get(customerId)?.keys.has(keyPrefix) === true
    return isKnown && this.#settled !== undefined
  }

  /** The open reservations of all accounts in memory. */
  held(): readonly HeldReservation[] {
    return [...this.#known.values()].flatMap(({ customerId, open }) =>
      Array.from(open, ([requestId, reservation]) => heldBy(requestId, customerId, reservation)),
    )
  }

  find(customerId: string): Account | undefined {
    const known = this.#known.get(customerId)
    if (known !== undefined) return known
    const account = readAccount(this.#store, customerId)
    if (account === undefined) return undefined
    this.#known.set(customerId, account)
    for (const requestId of account.open.keys()) this.#holders.set(requestId, account)
    return account
  }

  keyOf({ customerId, keys }: Account, keyPrefix: string): AccountKey | undefined {
    const known = keys.get(keyPrefix)
    if (known !== undefined) return known
    const key = readAccountKey(this.#store, customerId, keyPrefix)
    if (key !== undefined) keys.set(keyPrefix, key)
    return key
  }

  /** The account in memory that has a reservation of this request. */
  knownHolderOf(requestId: string): Account | undefined {
    return this.#holders.get(requestId)
  }

  /** The account that has a reservation of this request; reads it if it is not in memory. */
  holderOf(requestId: string): Account | undefined {
    const known = this.#holders.get(requestId)
    if (known !== undefined) return known
    const [row] = this.#store.run(READ_HOLDER, [requestId]).rows
    if (row !== undefined) this.find(textOf(row, 'customer_id'))
    return this.#holders.get(requestId)
  }

  evidenceOf(account: Account): Map<string, number> {
    account.evidence ??= readEvidence(this.#store, account.customerId)
    return account.evidence
  }

  /** Records that the tables keep a piece of evidence at least until this time. */
  noteEvidence({ customerId, sha256, expiresAt }: EvidenceRetention): void {
    const stored = this.#known.get(customerId)?.evidence
    // If the customer's evidence is not in memory yet, it is read from the tables later.
    stored?.set(sha256, Math.max(expiresAt, stored.get(sha256) ?? 0))
  }

  reserve(account: Account, requestId: string, reservation: Reservation): void {
    account.open.set(requestId, reservation)
    account.reserved += reservation.amount
    // If the table still has an earlier reservation of the request, the fold deletes that row before it inserts this one.
    if (reservation.stored) account.ended.delete(requestId)
    this.#holders.set(requestId, account)
    this.changed.accounts.add(account)
  }

  /**
   * Ends a request's reservation.
   * @returns the reservation; undefined where the request has none
   */
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

  /** Records that the tables now agree with the memory. */
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

  /** Forgets the `count` accounts that were read first. The tables must agree with the memory. */
  forgetEarliest(count: number): void {
    const earliest = Array.from(this.#known.keys()).slice(0, count)
    for (const customerId of earliest) this.forget(customerId)
  }

  /** Forgets one account, if it is in memory. The tables must agree with the memory. */
  forget(customerId: string): void {
    const account = this.#known.get(customerId)
    if (account === undefined) return
    this.#known.delete(customerId)
    for (const requestId of account.open.keys()) this.#holders.delete(requestId)
  }
}
