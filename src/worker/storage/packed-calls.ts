import type { LedgerCall } from './ledger-calls.ts'
import type { AdmissionEntry } from './ledger-operations.ts'

/** Operations in a call to a ledger process. Admissions of one moment have the same plans, which are sent once. */
export interface PackedCalls {
  readonly plans: readonly AdmissionEntry['plans'][]
  readonly calls: readonly PackedCall[]
}

type PackedCall =
  | Exclude<LedgerCall, { readonly kind: 'admit' }>
  | {
      readonly kind: 'admit'
      readonly entry: Omit<AdmissionEntry, 'plans'>
      readonly plans: number
    }

/** Packs operations, in order. */
export function packCalls(calls: readonly LedgerCall[]): PackedCalls {
  const indexes = new Map<AdmissionEntry['plans'], number>()
  const indexOf = (plans: AdmissionEntry['plans']) => {
    const index = indexes.get(plans) ?? indexes.size
    indexes.set(plans, index)
    return index
  }
  const packed = calls.map((call): PackedCall => {
    if (call.kind !== 'admit') return call
    const { plans, ...entry } = call.entry
    return { kind: 'admit', entry, plans: indexOf(plans) }
  })
  return { plans: [...indexes.keys()], calls: packed }
}

/** Restores the operations. */
export function unpackCalls({ plans, calls }: PackedCalls): readonly LedgerCall[] {
  return calls.map((call) => {
    if (call.kind !== 'admit') return call
    const own = plans[call.plans]
    if (own === undefined) throw new Error('internal error: an admission without its plans')
    return { kind: 'admit', entry: { ...call.entry, plans: own } }
  })
}
