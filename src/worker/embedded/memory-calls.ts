import {
  failedCall,
  type AdmitCall,
  type FindCall,
  type LedgerOutcome,
  type ReleaseCall,
} from '../storage/ledger-calls.ts'
import type { Accounts } from './accounts.ts'
import { admitInMemory, BY_SQL, findInMemory } from './admission.ts'

/** Operations on accounts that memory may decide alone, with nothing written before the answer. */
export type MemoryCall = AdmitCall | ReleaseCall

/** Whether all that an operation needs has been read from the tables. */
export function isInMemory(accounts: Accounts, call: FindCall | MemoryCall): boolean {
  if (call.kind === 'release') return accounts.knownHolderOf(call.requestId) !== undefined
  const { customerId, keyPrefix } = call.kind === 'find' ? call.key : call.entry.key
  return accounts.knowsKey(customerId, keyPrefix)
}

/**
 * Looks a key up. Memory and tables together always know it: what is not in memory is in the tables as it was written last.
 * Never throws.
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

/** Carries out an operation in memory. Undefined: SQL must decide, and nothing was changed. Never throws. */
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
  // One that the table has may have a claim, too.
  if (holder === undefined || holder.open.get(requestId)?.stored !== false) return undefined
  accounts.endReservation(holder, requestId)
  return { ok: true, kind: 'release', released: true }
}
