import { failedOutcome, storageError, type BatchOutcome } from './batch-outcome.ts'
import type {
  AdmissionEntry,
  AdmissionFacts,
  KeyFacts,
  LedgerKey,
  LedgerOperations,
  SettlementEntry,
  SettlementResult,
  StoredEvidence,
} from './ledger-operations.ts'
import { isSqliteRefusal } from './sqlite-refusal.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** One operation on the ledger in the form in which it is sent to the engine. */
export type LedgerCall = AccountCall | FindCall | EvidenceCall

/** An operation that every engine supports, if only as SQL. */
export type AccountCall = AdmitCall | SettleCall | ReleaseCall

export interface AdmitCall {
  readonly kind: 'admit'
  readonly entry: AdmissionEntry
}

export interface SettleCall {
  readonly kind: 'settle'
  readonly entry: SettlementEntry
  /** The entry as JSON, where it was received as text. */
  readonly text?: string
  /**
   * The latest time to carry out the settlement, ms since the epoch: later nobody awaits the outcome, and the answer to be
   * billed may have been withheld.
   */
  readonly until?: number
}

export interface ReleaseCall {
  readonly kind: 'release'
  readonly requestId: string
}

export interface FindCall {
  readonly kind: 'find'
  readonly key: LedgerKey
}

export interface EvidenceCall {
  readonly kind: 'evidence'
  readonly evidence: StoredEvidence
}

/**
 * The outcome of a call. Error classes do not survive a call between processes or objects, so the kind of failure is data.
 */
export type LedgerOutcome =
  | { readonly ok: true; readonly kind: 'admit'; readonly facts: AdmissionFacts | null }
  | { readonly ok: true; readonly kind: 'settle'; readonly result: SettlementResult }
  | { readonly ok: true; readonly kind: 'release'; readonly released: boolean }
  | { readonly ok: true; readonly kind: 'find'; readonly facts: KeyFacts | null }
  | { readonly ok: true; readonly kind: 'evidence' }
  | FailedCall

export type FailedCall = Extract<BatchOutcome, { ok: false }>

/** The outcome of an operation that failed with this error. */
export function failedCall(error: unknown): FailedCall {
  const message = messageOfThrown(error)
  return failedOutcome(message, isSqliteRefusal(message))
}

/** Whether any of these operations may have changed something. */
export function haveChanged(outcomes: readonly LedgerOutcome[]): boolean {
  return outcomes.some((outcome) => outcome.ok && outcome.kind !== 'find')
}

/**
 * Carries out a call on these operations.
 * @throws what the operation throws
 */
export async function carryOut(
  operations: LedgerOperations,
  call: AccountCall,
): Promise<LedgerOutcome> {
  if (call.kind === 'admit') {
    return { ok: true, kind: 'admit', facts: (await operations.admit(call.entry)) ?? null }
  }
  if (call.kind === 'settle') {
    return { ok: true, kind: 'settle', result: await operations.settle(call.entry) }
  }
  return { ok: true, kind: 'release', released: await operations.release(call.requestId) }
}

/**
 * The operations of a ledger that is reached by calls.
 * @param call carries out one call, synchronously or not
 */
export function ledgerBehind(
  call: (call: LedgerCall) => LedgerOutcome | Promise<LedgerOutcome>,
): LedgerOperations {
  return {
    admit: async (entry) => {
      const outcome = successOf(await call({ kind: 'admit', entry }))
      if (outcome.kind !== 'admit') throw mismatched()
      return outcome.facts ?? undefined
    },
    settle: async (entry) => {
      const outcome = successOf(await call({ kind: 'settle', entry }))
      if (outcome.kind !== 'settle') throw mismatched()
      return outcome.result
    },
    release: async (requestId) => {
      const outcome = successOf(await call({ kind: 'release', requestId }))
      if (outcome.kind !== 'release') throw mismatched()
      return outcome.released
    },
    findKey: async (key) => {
      const outcome = successOf(await call({ kind: 'find', key }))
      if (outcome.kind !== 'find') throw mismatched()
      return outcome.facts ?? undefined
    },
    storeEvidence: async (evidence) => void successOf(await call({ kind: 'evidence', evidence })),
  }
}

function successOf(outcome: LedgerOutcome) {
  if (!outcome.ok) throw storageError(outcome.message, !outcome.unavailable)
  return outcome
}

function mismatched(): Error {
  return new Error('internal error: an operation has the outcome of another one')
}
