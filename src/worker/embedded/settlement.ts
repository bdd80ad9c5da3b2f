import { KEY_LIMIT_PCT, limitReachedId } from '../settle/alerts.ts'
import { latestBill } from '../settle/key-limits.ts'
import { retainUntil } from '../settle/settle-sql.ts'
import { UNLIMITED } from '../settle/plan-terms.ts'
import type { SettlementEntry } from '../storage/ledger-operations.ts'
import type { Account, AccountKey, Reservation } from './account.ts'
import type { Accounts } from './accounts.ts'
import { spentInPeriod, windowIsOver } from './admission.ts'
import { isAmount, isBalance, isCount } from './ranges.ts'

/** A settlement that is in the journal but not in the tables yet. */
export interface Bill {
  readonly entry: SettlementEntry
  readonly seq: number
  readonly createdAt: number
  readonly events: readonly WebhookEvent[]
  /** The reservation of its request, where it had one. */
  readonly reservation: Reservation | undefined
}

/** A row of `webhook_events`. */
export interface WebhookEvent {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly amount: bigint
  readonly limit: bigint
}

const MODALITIES = new Set(['chat', 'transcription', 'embedding'])
const BILLING_UNITS = new Set(['token', 'audio_minute', 'audio_second', 'request'])

/**
 * Whether memory can settle an entry. Entries with a claim, and values that a CHECK of the schema might refuse, are left to
 * SQL, so that the journal never holds a settlement that the tables would not accept.
 */
export function isOrdinary(accounts: Accounts, entry: SettlementEntry): boolean {
  const account = accounts.find(entry.customerId)
  return (
    entry.claim === null &&
    account !== undefined &&
    fitsColumns(entry) &&
    fitsTotals(account, accounts.keyOf(account, entry.keyPrefix), BigInt(entry.usage.costNano))
  )
}

function fitsColumns({ usage, receipt }: SettlementEntry): boolean {
  const { promptTokens, completionTokens, createdAtMs, discountPct, audioSeconds } = usage
  return (
    [promptTokens, completionTokens, createdAtMs, receipt?.expiresAtMs ?? 0].every(isCount) &&
    MODALITIES.has(usage.modality) &&
    BILLING_UNITS.has(usage.billingUnit) &&
    isCount(discountPct) &&
    discountPct <= 100 &&
    (audioSeconds === null || (Number.isFinite(audioSeconds) && audioSeconds >= 0))
  )
}

function fitsTotals(account: Account, key: AccountKey | undefined, cost: bigint): boolean {
  return (
    isAmount(cost) &&
    isBalance(account.balance - cost) &&
    isCount(account.usageCount + 1) &&
    (key === undefined || isAmount(key.spentNano + cost))
  )
}

/** Bills an ordinary entry in memory. `undo` reverts the bill as long as nothing else was billed since. */
export function billInMemory(
  accounts: Accounts,
  entry: SettlementEntry,
): { readonly bill: Bill; readonly undo: () => void } {
  const account = accounts.find(entry.customerId)
  if (account === undefined) throw new Error('internal error: an ordinary entry has an account')
  const { balance, usageCount, lastUsageAt } = account
  const cost = BigInt(entry.usage.costNano)
  const reservation = accounts.endReservation(account, entry.requestId)
  account.balance -= cost
  account.usageCount += 1
  account.lastUsageAt = Math.max(lastUsageAt, entry.usage.createdAtMs)
  accounts.changed.accounts.add(account)
  accounts.noteSettled(entry)
  const key = accounts.keyOf(account, entry.keyPrefix)
  const undoKey = key === undefined ? () => {} : countOnKey(accounts, account, key, entry)
  return {
    bill: {
      entry,
      seq: account.usageCount,
      createdAt: account.lastUsageAt,
      events: eventsOf(account, key, entry),
      reservation,
    },
    undo: () => {
      undoKey()
      Object.assign(account, { balance, usageCount, lastUsageAt })
      if (reservation !== undefined) accounts.reserve(account, entry.requestId, reservation)
    },
  }
}

/**
 * Adds cost and tokens to the key's counters.
 * @returns reverts it
 */
function countOnKey(
  accounts: Accounts,
  account: Account,
  key: AccountKey,
  { usage }: SettlementEntry,
): () => void {
  const { spentNano, spentAt, windowStartedAt, windowRequests, windowTokens } = key
  const { createdAtMs, promptTokens, completionTokens } = usage
  key.spentNano = spentInPeriod(key, createdAtMs) + BigInt(usage.costNano)
  key.spentAt = latestBill(spentAt, createdAtMs)
  addTokens(key, promptTokens + completionTokens, createdAtMs)
  accounts.changed.keys.set(key, account)
  const former = { spentNano, spentAt, windowStartedAt, windowRequests, windowTokens }
  return () => Object.assign(key, former)
}

/** Adds tokens to the key's window; begins a new window where the old one has ended and the key limits tokens. */
function addTokens(key: AccountKey, tokens: number, now: number): void {
  if (key.tokensPerMinute !== null && windowIsOver(key, now)) {
    key.windowStartedAt = now
    key.windowRequests = 0
    key.windowTokens = 0
  }
  key.windowTokens = key.windowTokens > UNLIMITED - tokens ? UNLIMITED : key.windowTokens + tokens
}

/** The alerts for the thresholds that this bill crosses, as in `alerts.ts`. */
function eventsOf(
  account: Account,
  key: AccountKey | undefined,
  entry: SettlementEntry,
): readonly WebhookEvent[] {
  if (entry.alertBelowNano === null) return []
  const cost = BigInt(entry.usage.costNano)
  const events: WebhookEvent[] = []
  const below = account.alertBalanceNano ?? BigInt(entry.alertBelowNano)
  const { balance } = account
  if (account.prepaid && balance < below && balance + cost >= below) {
    const id = `${entry.requestId}.balance`
    events.push({ id, type: 'balance.low', subject: '', amount: balance, limit: below })
  }
  if (key === undefined || key.limitNano === null) return events
  const { keyPrefix: subject, spentNano: amount, limitNano: limit } = key
  const near = (limit / 100n) * BigInt(account.alertKeyLimitPct ?? KEY_LIMIT_PCT)
  if (amount >= near && amount - cost < near) {
    events.push({ id: `${entry.requestId}.key`, type: 'key.limit_near', subject, amount, limit })
  }
  if (amount >= limit) {
    const id = limitReachedId(subject, limit, key.limitReset, entry.usage.createdAtMs)
    events.push({ id, type: 'key.limit_reached', subject, amount, limit })
  }
  return events
}

/**
 * Extends the retention of the evidence that a receipt names.
 * @returns the digests of evidence that is not stored
 */
export function keepEvidence(accounts: Accounts, entry: SettlementEntry): readonly string[] {
  const { receipt } = entry
  if (receipt === null || receipt.evidenceRefs.length === 0) return []
  const account = accounts.find(entry.customerId)
  if (account === undefined) return receipt.evidenceRefs
  const stored = accounts.evidenceOf(account)
  const until = retainUntil(receipt.expiresAtMs)
  for (const ref of receipt.evidenceRefs) {
    const expiresAt = stored.get(ref)
    if (expiresAt === undefined || expiresAt >= until) continue
    stored.set(ref, until)
    accounts.changed.evidence.set(`${account.customerId} ${ref}`, {
      customerId: account.customerId,
      sha256: ref,
      expiresAt: until,
    })
  }
  return receipt.evidenceRefs.filter((ref) => !stored.has(ref))
}
