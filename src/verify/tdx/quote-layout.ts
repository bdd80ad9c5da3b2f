import type { Bytes } from '../../protocol/bytes.ts'
import { Quote } from '@phala/dcap-qvl'
import { copyBytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

/** Larger quotes are refused unread; real ones have about 5 KiB. */
export const MAX_QUOTE_BYTES = 32_768

/**
 * Reads REPORT_DATA of a TDX quote that is not verified yet.
 * @throws EvidenceRefused `too_large`, `malformed`, or `unknown_format` when it is not a TDX quote
 */
export function quoteReportData(quote: Bytes): Bytes {
  if (quote.length > MAX_QUOTE_BYTES) throw new EvidenceRefused('too_large')
  try {
    const td = Quote.parse(quote).report.asTd10()
    if (td !== null) return copyBytes(td.reportData)
  } catch (cause) {
    throw new EvidenceRefused('malformed', ['TDX quote'], { cause })
  }
  throw new EvidenceRefused('unknown_format')
}
