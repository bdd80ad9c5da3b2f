import { sqlLedger } from '../settle/sql-ledger.ts'
import type { Database } from '../storage/database.ts'
import {
  carryOut,
  failedCall,
  type AccountCall,
  type LedgerOutcome,
} from '../storage/ledger-calls.ts'
import type { Accounts } from './accounts.ts'

/**
 * Carries out an operation by the SQL that all engines share. Never throws.
 * @param database its transactions begin with a fold, so that the tables agree with the memory
 */
export async function carryOutBySql(
  database: Database,
  accounts: Accounts,
  call: AccountCall,
): Promise<LedgerOutcome> {
  try {
    // The operation changes the account of its customer, and that of the customer who holds a reservation under the same
    // request id.
    const holder = accounts.holderOf(requestIdOf(call))
    const outcome = await carryOut(sqlLedger(database), call)
    for (const customerId of [customerOf(call), holder?.customerId]) {
      if (customerId !== undefined) accounts.forget(customerId)
    }
    if (call.kind === 'settle') accounts.noteSettled(call.entry)
    return outcome
  } catch (error) {
    // The transaction was rolled back, so the accounts in memory are still right.
    return failedCall(error)
  }
}

function requestIdOf(call: AccountCall): string {
  return call.kind === 'release' ? call.requestId : call.entry.requestId
}

function customerOf(call: AccountCall): string | undefined {
  if (call.kind === 'release') return undefined
  return call.kind === 'admit' ? call.entry.key.customerId : call.entry.customerId
}
