import { constants, Quote, QuoteVerifier, type Collateral, type TDReport10 } from '@phala/dcap-qvl'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { requireCertificateDates } from './certificate-dates.ts'
import { requireCertificateRoles } from './certificate-roles.ts'
import { asBuffer } from './chip-chain.ts'
import { checkRevocationLists } from './revocation.ts'
import { judgeTcb, type TcbVerdict } from './tcb-status.ts'

/** Intel's documents on a platform: TCB levels, quoting enclave, revocation lists (Intel PCS v4). */
export type QuoteCollateral = Collateral

/** The body of a TDX quote whose signature and certificates are verified, with Intel's rating of its platform. */
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
  /** Always from the quote: no other document is authoritative. */
  readonly reportData: Bytes
  /**
   * The earliest end of anything that the verdict depends on, in milliseconds since 1970: a certificate, or the time
   * until Intel replaces a revocation list, TCB info or enclave identity.
   */
  readonly endsAt: number
}

/**
 * Verifies a quote as of `now` (ms): signatures, certificates and their roles, revocation lists, dates, TDX module and
 * TCB level. Whether the platform's state is acceptable is for the caller to decide.
 * @throws EvidenceRefused `hardware` with the failed check, `debug`, or `unknown_format` when it is not a TDX quote
 */
export type VerifyQuote = (
  quote: Bytes,
  collateral: QuoteCollateral,
  now: number,
) => Promise<VerifiedQuote>

/** The production verifier, with Intel's root. */
export const verifyIntelQuote = createQuoteVerifier(copyBytes(constants.TRUSTED_ROOT_CA_DER))

/** Creates a verifier with a root of the caller's choice, in DER. */
export function createQuoteVerifier(rootDer: Bytes): VerifyQuote {
  const verifier = new QuoteVerifier(asBuffer(rootDer))
  return async (quote, collateral, now) => {
    verifySignatures(verifier, quote, collateral, now)
    const parsed = Quote.parse(quote)
    const certificates = requireCertificateRoles(parsed, collateral, rootDer)
    const certificatesEnd = requireCertificateDates(certificates, now)
    const listsEnd = await checkRevocationLists(parsed, collateral, { rootDer, now })
    const td = parsed.report.asTd10()
    if (td === null) throw new EvidenceRefused('unknown_format')
    const serviceTd = parsed.report.asTd15()?.mrServiceTd
    if (serviceTd?.some((byte) => byte !== 0)) {
      throw new EvidenceRefused('hardware', ['service_td'])
    }
    const rated = judgeTcb(parsed, td, collateral)
    const endsAt = Math.min(certificatesEnd, listsEnd, rated.endsAt)
    return { ...rated, ...readGuest(td), endsAt }
  }
}

/**
 * Error messages of `@phala/dcap-qvl` (0.3.9) that mean that every signature, certificate and date was verified and
 * only its rating of the platform failed. Its rating does not support TDX modules, so ours replaces it.
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
