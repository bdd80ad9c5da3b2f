import type { AdmissionEntry, AdmissionFacts, LedgerKey } from '../storage/ledger-operations.ts'
import { WINDOW_MS } from '../settle/admit-sql.ts'
import { periodOf } from '../settle/key-limits.ts'
import { amountOf, termsOfPlan, UNLIMITED } from '../settle/plan-terms.ts'
import type { Account, AccountKey } from './account.ts'
import type { Accounts } from './accounts.ts'
import { isAmount } from './ranges.ts'

/** Returned where memory cannot decide an admission, so that SQL must. */
export const BY_SQL = Symbol('by SQL')

/**
 * Admits a request to an account in memory under the conditions of `admit-sql.ts`, or changes nothing.
 * @returns undefined where there is no such key
 */
export function admitInMemory(
  accounts: Accounts,
  entry: AdmissionEntry,
): AdmissionFacts | undefined | typeof BY_SQL {
  if (entry.claim !== null) return BY_SQL
  const { requestId, now } = entry
  const found = findInMemory(accounts, entry.key)
  if (found === undefined) return undefined
  const { account, key, secretEndsAt } = found
  const amount = BigInt(amountOf(entry, account))
  const isElsewhere = (accounts.knownHolderOf(requestId) ?? account) !== account
  if (isElsewhere || !isAmount(account.reserved + amount)) return BY_SQL

  const overLimit = isOverLimit(account, key, amount, now)
  const isValid = secretEndsAt === null || secretEndsAt > now
  const isKnown = account.open.has(requestId)
  const mayEnter = () =>
    isValid &&
    !account.suspended &&
    (!account.prepaid || account.balance - account.reserved >= amount) &&
    (key.expiresAt === null || key.expiresAt > now) &&
    hasRoomInWindow(account, key, entry) &&
    hasRoomBeside(account, key, entry) &&
    !overLimit
  const enters = !isKnown && mayEnter()
  if (enters) {
    const { keyPrefix } = key
    const times = { createdAt: now, expiresAt: entry.expiresAt }
    const surelyNew = accounts.settled.isSurelyNew(requestId, now)
    accounts.reserve(account, requestId, { keyPrefix, amount, ...times, surelyNew, stored: false })
    countRequest(accounts, account, key, entry)
  }
  return factsOf(found, {
    admitted: enters || isKnown,
    overLimit: !enters && overLimit,
    openRequests: enters ? 0 : openRequestsOf(account, key.keyPrefix, now),
  })
}

interface FoundKey {
  readonly account: Account
  readonly key: AccountKey
  /** When the presented secret stops being valid, ms; null: it is the key's current one. */
  readonly secretEndsAt: number | null
}

/** Finds a key that exists, by its current secret or a former one. */
export function findInMemory(
  accounts: Accounts,
  { customerId, keyPrefix, keyHash }: LedgerKey,
): FoundKey | undefined {
  const account = accounts.find(customerId)
  const key = account && accounts.keyOf(account, keyPrefix)
  if (account === undefined || key === undefined || key.deleted) return undefined
  if (key.keyHash === keyHash) return { account, key, secretEndsAt: null }
  const secretEndsAt = key.formerSecrets.get(keyHash)
  return secretEndsAt === undefined ? undefined : { account, key, secretEndsAt }
}

type Decision = Pick<AdmissionFacts, 'admitted' | 'overLimit' | 'openRequests'>

function factsOf({ account, key, secretEndsAt }: FoundKey, decision: Decision): AdmissionFacts {
  return {
    customerName: account.name,
    keyName: key.name,
    plan: account.plan,
    receiptRetentionDays: account.receiptRetentionDays,
    suspended: account.suspended,
    expiresAt: key.expiresAt,
    secretEndsAt,
    models: key.models,
    minAttestation: key.minAttestation,
    requestsPerMinute: key.requestsPerMinute,
    tokensPerMinute: key.tokensPerMinute,
    concurrentRequests: key.concurrentRequests,
    windowStartedAt: key.windowStartedAt,
    windowRequests: key.windowRequests,
    windowTokens: key.windowTokens,
    admitted: decision.admitted,
    isRepeat: false,
    overLimit: decision.overLimit,
    openRequests: decision.openRequests,
  }
}

/** What a key has spent in the current period. */
export function spentInPeriod({ limitReset, spentAt, spentNano }: AccountKey, now: number): bigint {
  return spentAt < periodOf(limitReset, now).start ? 0n : spentNano
}

function isOverLimit(account: Account, key: AccountKey, amount: bigint, now: number): boolean {
  if (key.limitNano === null) return false
  let reserved = 0n
  for (const { keyPrefix, amount: held } of account.open.values()) {
    if (keyPrefix === key.keyPrefix) reserved += held
  }
  return spentInPeriod(key, now) + reserved + amount > key.limitNano
}

/** Whether the key's window has ended. A start far in the future means that the clock was set back, and counts as ended. */
export function windowIsOver({ windowStartedAt }: AccountKey, now: number): boolean {
  return Math.abs(now - windowStartedAt) >= WINDOW_MS
}

function hasRoomInWindow({ plan }: Account, key: AccountKey, { plans, now }: AdmissionEntry) {
  if (windowIsOver(key, now)) return true
  const perMinute = termsOfPlan(plans, plan).requests_per_minute ?? UNLIMITED
  return (
    key.windowRequests < perMinute &&
    key.windowRequests < (key.requestsPerMinute ?? UNLIMITED) &&
    key.windowTokens < (key.tokensPerMinute ?? UNLIMITED)
  )
}

function hasRoomBeside(account: Account, key: AccountKey, { plans, now }: AdmissionEntry): boolean {
  const ofPlan = termsOfPlan(plans, account.plan).concurrent_requests
  const most = Math.min(ofPlan ?? UNLIMITED, key.concurrentRequests ?? UNLIMITED)
  return most === UNLIMITED || most > openRequestsOf(account, key.keyPrefix, now)
}

/** Open, unexpired reservations of a key. */
function openRequestsOf({ open }: Account, prefix: string, now: number): number {
  let count = 0
  for (const { keyPrefix, expiresAt } of open.values()) {
    if (keyPrefix === prefix && expiresAt > now) count += 1
  }
  return count
}

/** Counts an admitted request in its key's window where the plan or the key has a limit per minute. */
function countRequest(
  accounts: Accounts,
  account: Account,
  key: AccountKey,
  { plans, now }: AdmissionEntry,
): void {
  const perMinute = termsOfPlan(plans, account.plan).requests_per_minute
  const ofPlan = perMinute !== undefined && perMinute < UNLIMITED
  if (!ofPlan && key.requestsPerMinute === null && key.tokensPerMinute === null) return
  countInWindow(accounts, account, key, now)
}

/** Counts a request in its key's window, and opens a new window where the old one has ended. */
export function countInWindow(
  accounts: Accounts,
  account: Account,
  key: AccountKey,
  now: number,
): void {
  if (windowIsOver(key, now)) {
    key.windowRequests = 0
    key.windowTokens = 0
    key.windowStartedAt = now
  }
  key.windowRequests += 1
  accounts.changed.keys.set(key, account)
}
