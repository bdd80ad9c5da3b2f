import type { LedgerCall } from './ledger-calls.ts'
import type { AdmissionEntry, SettlementEntry } from './ledger-operations.ts'

/** The first line of a packed text. Admissions that arrive together have the same plans, which are sent once. */
interface Packed {
  readonly plans: readonly AdmissionEntry['plans'][]
  readonly calls: readonly PackedCall[]
  /** The deadline of its settlements (`SettleCall.until`). */
  readonly until?: number
}

type PackedCall =
  | Exclude<LedgerCall, { readonly kind: 'admit' | 'settle' }>
  | { readonly kind: 'settle' }
  | {
      readonly kind: 'admit'
      readonly entry: Omit<AdmissionEntry, 'plans'>
      readonly plans: number
    }

/** Ends a line; JSON text contains none. */
const END = '\n'

/**
 * Packs operations, in order, for a call to the ledger process. The entry of each settlement is a line of its own after the
 * first line, so that the ledger can write this text to its journal without serialising the entry again.
 * @param until the latest time to carry out the settlements, ms since the epoch
 */
export function packCalls(calls: readonly LedgerCall[], until?: number): string {
  const indexes = new Map<AdmissionEntry['plans'], number>()
  const indexOf = (plans: AdmissionEntry['plans']) => {
    const index = indexes.get(plans) ?? indexes.size
    indexes.set(plans, index)
    return index
  }
  const entries: string[] = []
  const packed = calls.map((call): PackedCall => {
    if (call.kind === 'settle') {
      entries.push(JSON.stringify(call.entry))
      return { kind: 'settle' }
    }
    if (call.kind !== 'admit') return call
    const { plans, ...entry } = call.entry
    return { kind: 'admit', entry, plans: indexOf(plans) }
  })
  const late = until === undefined ? {} : { until }
  const first: Packed = { plans: [...indexes.keys()], calls: packed, ...late }
  return [JSON.stringify(first), ...entries].join(END)
}

/**
 * Restores the operations.
 * @throws Error when the text is malformed
 */
export function unpackCalls(text: string): readonly LedgerCall[] {
  const [first = '', ...entries] = text.split(END)
  // The worker is the same program, behind a pinned certificate.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { plans, calls, until } = JSON.parse(first) as Packed
  let next = 0
  return calls.map((call) => {
    if (call.kind === 'settle') return settlementIn(entries[next++], until)
    if (call.kind !== 'admit') return call
    const own = plans[call.plans]
    if (own === undefined) throw new Error('internal error: an admission without its plans')
    return { kind: 'admit', entry: { ...call.entry, plans: own } }
  })
}

function settlementIn(text: string | undefined, until: number | undefined): LedgerCall {
  if (text === undefined) throw new Error('internal error: a settlement without its entry')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const entry = JSON.parse(text) as SettlementEntry
  return { kind: 'settle', entry, text, ...(until === undefined ? {} : { until }) }
}
