import type { HeldReservation } from '../storage/ledger-engine.ts'
import type { SettlementEntry } from '../storage/ledger-operations.ts'
import type { Accounts } from './accounts.ts'
import { countInWindow } from './admission.ts'
import { settlementEntrySchema } from './entry-schema.ts'
import type { PendingBills } from './pending.ts'
import { isAmount } from './ranges.ts'
import { billInMemory, isOrdinary, keepEvidence } from './settlement.ts'

/**
 * What a new ledger instance takes over from the previous one: settlements from the journal, reservations from its memory.
 */

/**
 * Bills again in memory the settlements that are in the journal but not in the tables.
 * @param texts the entries of the journal, oldest first
 * @throws Error when the tables would not accept a settlement of the journal
 */
export function bringBack(
  texts: readonly string[],
  accounts: Accounts,
  pending: PendingBills,
): void {
  const entries = texts.map((text) => settlementEntrySchema.parse(JSON.parse(text)))
  const { isSettled, hasReceipt } = pending.lookUp(entries)
  for (const entry of entries) {
    if (isSettled(entry)) continue
    if (hasReceipt(entry) || !isOrdinary(accounts, entry)) {
      throw new Error('internal error: the journal holds a settlement that the tables do not take')
    }
    keepEvidence(accounts, entry)
    countWhatTablesLack(accounts, entry)
    pending.add(billInMemory(accounts, entry).bill)
  }
}

/**
 * Counts a settled request in its key's window if the table has no reservation of it: it was then admitted after the last
 * fold, so the window in the tables does not include it.
 */
function countWhatTablesLack(
  accounts: Accounts,
  { requestId, customerId, keyPrefix, usage }: SettlementEntry,
): void {
  const account = accounts.find(customerId)
  if (account === undefined || account.open.has(requestId)) return
  const key = accounts.keyOf(account, keyPrefix)
  if (key !== undefined) countInWindow(accounts, account, key, usage.createdAtMs)
}

/** Restores the reservations whose requests are neither settled nor have a reservation in the tables. */
export function holdAgain(
  held: readonly HeldReservation[],
  accounts: Accounts,
  pending: PendingBills,
): void {
  const { isSettled } = pending.lookUp(held.map((one) => ({ ...one, receipt: null })))
  for (const { requestId, customerId, ...reservation } of held) {
    const account = accounts.find(customerId)
    const isGone = isSettled({ requestId }) || accounts.holderOf(requestId) !== undefined
    if (account === undefined || isGone) continue
    if (!isAmount(account.reserved + reservation.amount)) continue
    accounts.reserve(account, requestId, { ...reservation, surelyNew: false, stored: false })
    const key = accounts.keyOf(account, reservation.keyPrefix)
    if (key !== undefined) countInWindow(accounts, account, key, reservation.createdAt)
  }
}
