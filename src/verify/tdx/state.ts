import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import type { VerifiedQuote } from './quote.ts'

/** Requirements of a relying party on a TDX platform and on the launch of a guest. */
export interface TdxRequirements {
  /** Accepted platform states, in Intel's notation. */
  readonly tcb_statuses: readonly string[]
  readonly tdx_policy: {
    /** Bits of TD_ATTRIBUTES that may be set, 16 hex digits, highest first. SEPT_VE_DISABLE must be set in any case. */
    readonly allowed_td_attributes: string
    /** Bits of XFAM that may be set, 16 hex digits, highest first. */
    readonly allowed_xfam: string
    /** Accepted SHA-384 digests of TDX modules; by default any module that Intel rates well enough. */
    readonly allowed_mr_seam?: readonly string[] | undefined
    readonly min_tcb_evaluation_data_number: number
    /** Intel's advisories that must not apply to any part, such as `INTEL-SA-01099`. */
    readonly denied_advisories: readonly string[]
  }
}

/** States that are never accepted, whatever the policy. */
const NEVER_ACCEPTED: ReadonlySet<string> = new Set(['Revoked', 'Unknown', 'NotSupported'])

/** TUD, the lowest byte of TD_ATTRIBUTES: any bit set in it exposes the guest to its host. */
const UNTRUSTED = 0xffn

/** Bit 28 of TD_ATTRIBUTES: without it the host can inject exceptions on the guest's own pages. */
const SEPT_VE_DISABLE = 1n << 28n

/** x87 and SSE state, which every guest has (Intel TDX module specification, XFAM). */
const XFAM_FIXED = 0x3n

/**
 * Requires a closed guest on a platform in an accepted state.
 * @throws EvidenceRefused `debug`, `hardware` (`td_attributes`, `xfam`), `tcb_status` or `measurement` (`mr_seam`)
 */
export function requireTdxState(quote: VerifiedQuote, requirements: TdxRequirements): void {
  const { tcbStatus, advisoryIds, tcbEvaluationDataNumber: number } = quote
  const policy = requirements.tdx_policy
  requireAttributes(quote, policy)
  if (NEVER_ACCEPTED.has(tcbStatus) || !requirements.tcb_statuses.includes(tcbStatus)) {
    throw new EvidenceRefused('tcb_status')
  }
  if (number < policy.min_tcb_evaluation_data_number) {
    throw new EvidenceRefused('tcb_status', ['tcb_evaluation_data_number'])
  }
  if (advisoryIds.some((id) => policy.denied_advisories.includes(id))) {
    throw new EvidenceRefused('tcb_status', ['advisory'])
  }
  if (policy.allowed_mr_seam?.includes(toHex(quote.mrSeam)) === false) {
    throw new EvidenceRefused('measurement', ['mr_seam'])
  }
}

function requireAttributes(quote: VerifiedQuote, policy: TdxRequirements['tdx_policy']): void {
  const attributes = littleEndian(quote.attributes)
  const xfam = littleEndian(quote.xfam)
  if ((attributes & UNTRUSTED) !== 0n) throw new EvidenceRefused('debug')
  const forbidden = attributes & ~BigInt(`0x${policy.allowed_td_attributes}`)
  if (forbidden !== 0n || (attributes & SEPT_VE_DISABLE) === 0n) {
    throw new EvidenceRefused('hardware', ['td_attributes'])
  }
  if ((xfam & ~BigInt(`0x${policy.allowed_xfam}`)) !== 0n || (xfam & XFAM_FIXED) !== XFAM_FIXED) {
    throw new EvidenceRefused('hardware', ['xfam'])
  }
}

function littleEndian(bytes: Bytes): bigint {
  return BigInt(`0x${toHex(bytes.toReversed())}`)
}

/**
 * The measurement of firmware, its configuration, kernel and initrd: MRTD, RTMR0, RTMR1, RTMR2, 384 hex digits
 * together.
 */
export function tdxMeasurement({ mrTd, rtMr: [first, second, third] }: VerifiedQuote): string {
  return [mrTd, first, second, third].map(toHex).join('')
}

export function summarizeTdx(quote: VerifiedQuote) {
  const { tcbStatus, advisoryIds, tcbEvaluationDataNumber, tdxModule, mrTd, rtMr } = quote
  return {
    tcb_status: tcbStatus,
    advisory_ids: [...advisoryIds],
    tcb_evaluation_data_number: tcbEvaluationDataNumber,
    tdx_module: {
      version: tdxModule.version,
      svn: tdxModule.svn,
      tcb_status: tdxModule.status,
      mr_seam: toHex(quote.mrSeam),
    },
    dbgstat: 'disabled',
    mrtd: toHex(mrTd),
    rtmr: rtMr.map(toHex),
    mr_config_id: toHex(quote.mrConfigId),
  }
}
