import {
  failedCall,
  type AdmitCall,
  type FindCall,
  type LedgerOutcome,
  type ReleaseCall,
} from '../storage/ledger-calls.ts'
import type { Accounts } from './accounts.ts'
import { admitInMemory, BY_SQL, findInMemory } from './admission.ts'

/** Operations that memory can decide alone, without a write before the answer. */
export type MemoryCall = AdmitCall | ReleaseCall

/** Whether everything that an operation needs is in memory. */
export function isInMemory(accounts: Accounts, call: FindCall | MemoryCall): boolean {
  if (call.kind === 'release') return accounts.knownHolderOf(call.requestId) !== undefined
  const { customerId, keyPrefix } = call.kind === 'find' ? call.key : call.entry.key
  return accounts.knowsKey(customerId, keyPrefix)
}

/**
 * Looks up a key. Reads it from the tables if it is not in memory: the rows of accounts that are not in memory are up to
 * date. Never throws.
 */
export function find(accounts: Accounts, { key: presented }: FindCall): LedgerOutcome {
  try {
    const found = findInMemory(accounts, presented)
    if (found === undefined) return { ok: true, kind: 'find', facts: null }
    const { name: keyName, expiresAt } = found.key
    const facts = { keyName, expiresAt, secretEndsAt: found.secretEndsAt }
    return { ok: true, kind: 'find', facts }
  } catch (error) {
    return failedCall(error)
  }
}

/**
 * Carries out an operation in memory. Never throws.
 * @returns undefined where SQL must decide; nothing is changed then
 */
export function carryOutInMemory(accounts: Accounts, call: MemoryCall): LedgerOutcome | undefined {
  try {
    return call.kind === 'admit' ? admit(accounts, call) : release(accounts, call)
  } catch (error) {
    return failedCall(error)
  }
}

function admit(accounts: Accounts, { entry }: AdmitCall): LedgerOutcome | undefined {
  const facts = admitInMemory(accounts, entry)
  return facts === BY_SQL ? undefined : { ok: true, kind: 'admit', facts: facts ?? null }
}

function release(accounts: Accounts, { requestId }: ReleaseCall): LedgerOutcome | undefined {
  const holder = accounts.holderOf(requestId)
  // A reservation that is in the table may belong to a claim, which only SQL can release.
  if (holder === undefined || holder.open.get(requestId)?.stored !== false) return undefined
  accounts.endReservation(holder, requestId)
  return { ok: true, kind: 'release', released: true }
}
