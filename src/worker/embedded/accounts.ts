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
    const [row] = this.#settled === undefined ? this.#store.run(READ_LATEST_USAGE, []).rows : []
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

  /** Of the accounts that were read, the one that has a reservation of this request. */
  knownHolderOf(requestId: string): Account | undefined {
    return this.#holders.get(requestId)
  }

  /** The account that has a reservation of this request. */
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
}
