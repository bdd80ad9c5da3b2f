import { toHex } from '../../protocol/bytes.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import type { VerifiedQuote } from './tdx-quote.ts'

/** Never accepted, whatever a policy says. */
const HOPELESS: ReadonlySet<string> = new Set(['Revoked', 'Unknown'])

/** Demands a closed guest on a platform in a state the operator accepts. Throws `EvidenceRefused`. */
export function demandTdxState(
  { debug, tcbStatus }: VerifiedQuote,
  allowed: readonly string[],
): void {
  if (debug) throw new EvidenceRefused('debug')
  if (HOPELESS.has(tcbStatus) || !allowed.includes(tcbStatus)) {
    throw new EvidenceRefused('tcb_status')
  }
}

/** Firmware, its configuration, kernel and initrd: MRTD, RTMR0, RTMR1, RTMR2, 384 hex digits together. */
export function tdxMeasurement({ mrTd, rtMr: [first, second, third] }: VerifiedQuote): string {
  return [mrTd, first, second, third].map(toHex).join('')
}

export function summarizeTdx({ tcbStatus, advisoryIds, mrTd, rtMr, debug }: VerifiedQuote) {
  return {
    tcb_status: tcbStatus,
    advisory_ids: [...advisoryIds],
    dbgstat: debug ? 'enabled' : 'disabled',
    mrtd: toHex(mrTd),
    rtmr: rtMr.map(toHex),
  }
}
