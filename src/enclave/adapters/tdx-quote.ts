import { constants, QuoteVerifier, type Collateral, type VerifiedReport } from '@phala/dcap-qvl'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { checkRevocationLists } from './intel-revocation.ts'
import { isDebug, judgeBelowEveryLevel } from './tdx-out-of-date.ts'

/** What Intel publishes of a platform: TCB levels, quoting enclave, revocation lists (Intel PCS v4). */
export type QuoteCollateral = Collateral

/** The body of a TDX quote whose signature and certificates are verified. */
export interface VerifiedQuote {
  /** As Intel spells it: `UpToDate`, `OutOfDate`, `SWHardeningNeeded` and others. */
  readonly tcbStatus: string
  readonly advisoryIds: readonly string[]
  readonly debug: boolean
  readonly mrTd: Bytes
  /** RTMR0 to RTMR3. */
  readonly rtMr: readonly [Bytes, Bytes, Bytes, Bytes]
  readonly mrConfigId: Bytes
  /** Always taken from here: no document beside the quote says it with any authority. */
  readonly reportData: Bytes
}

/** Verifies a quote as of `now` (ms). Throws `EvidenceRefused`. Whether the status will do is for the caller to say. */
export type VerifyQuote = (quote: Bytes, collateral: QuoteCollateral, now: number) => VerifiedQuote

/** The real verifier: signatures, certificate chains, revocation lists and dates by Intel's rules. */
export const verifyIntelQuote = createQuoteVerifier(constants.TRUSTED_ROOT_CA_DER)

/** A verifier under a root of the caller's choice, in DER. */
export function createQuoteVerifier(rootDer: Buffer): VerifyQuote {
  const verifier = new QuoteVerifier(rootDer)
  return (quote, collateral, now) => {
    const { status, advisory_ids, report } = verifyOrRefuse(verifier, quote, collateral, now)
    checkRevocationLists(quote, collateral, { rootDer, now })
    const td = report.asTd10()
    if (td === null) throw new EvidenceRefused('unknown_format')
    return {
      tcbStatus: status,
      advisoryIds: advisory_ids,
      debug: isDebug(td.tdAttributes),
      mrTd: copyBytes(td.mrTd),
      rtMr: [copyBytes(td.rtMr0), copyBytes(td.rtMr1), copyBytes(td.rtMr2), copyBytes(td.rtMr3)],
      mrConfigId: copyBytes(td.mrConfigId),
      reportData: copyBytes(td.reportData),
    }
  }
}

/** What the library says once all signatures hold and the platform is older than every level Intel lists. */
const BELOW_EVERY_LEVEL = 'No matching TCB level found'

function verifyOrRefuse(
  verifier: QuoteVerifier,
  quote: Bytes,
  collateral: QuoteCollateral,
  now: number,
): Pick<VerifiedReport, 'status' | 'advisory_ids' | 'report'> {
  try {
    return verifier.verify(quote, collateral, Math.floor(now / 1000))
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : ''
    if (text === BELOW_EVERY_LEVEL) return judgeBelowEveryLevel(quote, collateral)
    if (text === 'Debug mode is enabled') throw new EvidenceRefused('debug', [], { cause })
    throw new EvidenceRefused('hardware', ['tdx_quote'], { cause })
  }
}
