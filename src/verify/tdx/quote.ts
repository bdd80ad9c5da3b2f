import { constants, Quote, QuoteVerifier, type Collateral, type TDReport10 } from '@phala/dcap-qvl'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { asBuffer } from './chip-chain.ts'
import { checkRevocationLists } from './revocation.ts'
import { judgeTcb, type TcbVerdict } from './tcb-status.ts'

/** What Intel publishes of a platform: TCB levels, quoting enclave, revocation lists (Intel PCS v4). */
export type QuoteCollateral = Collateral

/** The body of a TDX quote whose signature and certificates are verified, and how Intel rates its platform. */
export interface VerifiedQuote extends TcbVerdict {
  /** SHA-384 of the TDX module. */
  readonly mrSeam: Bytes
  /** TD_ATTRIBUTES and XFAM, 8 bytes each, lowest byte first. */
  readonly attributes: Bytes
  readonly xfam: Bytes
  readonly mrTd: Bytes
  /** RTMR0 to RTMR3. */
  readonly rtMr: readonly [Bytes, Bytes, Bytes, Bytes]
  readonly mrConfigId: Bytes
  /** Always taken from here: no document beside the quote says it with any authority. */
  readonly reportData: Bytes
}

/**
 * Verifies a quote as of `now` (ms): signatures, certificates, revocation lists, dates, TDX module and TCB level.
 * Whether the platform's state will do is for the caller to say.
 * @throws EvidenceRefused when the evidence does not meet these rules
 */
export type VerifyQuote = (
  quote: Bytes,
  collateral: QuoteCollateral,
  now: number,
) => Promise<VerifiedQuote>

/** The real verifier, under Intel's root. */
export const verifyIntelQuote = createQuoteVerifier(copyBytes(constants.TRUSTED_ROOT_CA_DER))

/** A verifier under a root of the caller's choice, in DER. */
export function createQuoteVerifier(rootDer: Bytes): VerifyQuote {
  const verifier = new QuoteVerifier(asBuffer(rootDer))
  return async (quote, collateral, now) => {
    verifySignatures(verifier, quote, collateral, now)
    const parsed = Quote.parse(quote)
    await checkRevocationLists(parsed, collateral, { rootDer, now })
    const td = parsed.report.asTd10()
    if (td === null) throw new EvidenceRefused('unknown_format')
    const serviceTd = parsed.report.asTd15()?.mrServiceTd
    if (serviceTd?.some((byte) => byte !== 0)) {
      throw new EvidenceRefused('hardware', ['service_td'])
    }
    return { ...judgeTcb(parsed, td, collateral), ...readGuest(td) }
  }
}

/**
 * What `@phala/dcap-qvl` (0.3.9) says once every signature, certificate and date holds, and it goes on to rate the
 * platform. Its rating knows no TDX module, so ours replaces it, whatever it comes to.
 */
const RATINGS = /^(No matching TCB level found$|TCB status is invalid: )/
const GUEST_FAULTS: ReadonlySet<string> = new Set([
  'Reserved bits in TD attributes are set',
  'SEPT_VE_DISABLE is not enabled',
])

function verifySignatures(
  verifier: QuoteVerifier,
  quote: Bytes,
  collateral: QuoteCollateral,
  now: number,
): void {
  try {
    verifier.verify(quote, collateral, Math.floor(now / 1000))
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : ''
    if (RATINGS.test(text)) return
    if (text === 'Debug mode is enabled') throw new EvidenceRefused('debug', [], { cause })
    const check = GUEST_FAULTS.has(text) ? 'td_attributes' : 'tdx_quote'
    throw new EvidenceRefused('hardware', [check], { cause })
  }
}

function readGuest(td: TDReport10): Omit<VerifiedQuote, keyof TcbVerdict> {
  return {
    mrSeam: copyBytes(td.mrSeam),
    attributes: copyBytes(td.tdAttributes),
    xfam: copyBytes(td.xfam),
    mrTd: copyBytes(td.mrTd),
    rtMr: [copyBytes(td.rtMr0), copyBytes(td.rtMr1), copyBytes(td.rtMr2), copyBytes(td.rtMr3)],
    mrConfigId: copyBytes(td.mrConfigId),
    reportData: copyBytes(td.reportData),
  }
}
