import { equalBytes, toHex } from '../../../protocol/bytes.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { fetchCollateral, type PcsSource } from '../../tdx/collateral.ts'
import { requireTdxState, summarizeTdx, tdxMeasurement } from '../../tdx/state.ts'
import { requireLaunchBinding } from '../launch-binding.ts'
import type { JudgePlatform } from './evidence.ts'
import type { TinfoilCollateral } from './evidence.ts'
import { originCheck, recordsOf, requireRelease } from './release.ts'

/**
 * Judges the TDX quote of a document: the collateral, the quote, the platform's state, REPORT_DATA, MRCONFIGID, and the
 * measurement. RTMR3 must be zero.
 */
export const judgeTinfoilTdx: JudgePlatform = async (document, fetched, policy, options) => {
  const { evidence, reportData, collateral } = document
  const collected = collateral.pcs
    ? await fetchCollateral(evidence, pcsFromDocument(collateral.pcs))
    : fetched.tdx_collateral
  if (collected === undefined) throw new EvidenceRefused('hardware', ['collateral'])
  const quote = await options.verifyQuote(evidence, collected, options.now)
  requireTdxState(quote, policy)
  if (!equalBytes(quote.reportData, reportData)) {
    throw new EvidenceRefused('hardware', ['report_data'])
  }
  requireLaunchBinding('mr_config_id', quote.mrConfigId, policy.allowed_mr_config_id)
  const isZero = quote.rtMr[3].every((byte) => byte === 0)
  if (!isZero) throw new EvidenceRefused('measurement')
  const releases = requireRelease(
    { platform: 'tdx', registers: [quote.mrTd, ...quote.rtMr.slice(0, 3)].map(toHex) },
    recordsOf(document, fetched),
    policy,
    options,
  )
  return {
    strength: 'hardware',
    claims: { tee: 'tdx', measurement: tdxMeasurement(quote) },
    summary: { ...summarizeTdx(quote), ...releases },
    checks: ['quote', 'debug', 'tcb_status', 'report_data', 'mr_config_id', originCheck(policy)],
    endsAt: quote.endsAt,
  }
}

/** Serves Intel's answers from the document. Missing ones are not fetched. */
function pcsFromDocument(replies: NonNullable<TinfoilCollateral['pcs']>): PcsSource {
  return async (url) => {
    const wanted = withoutUpdate(url)
    const found = [...replies].find(([address]) => withoutUpdate(address) === wanted)?.[1]
    if (found === undefined) throw new EvidenceRefused('hardware', ['collateral'])
    return { body: found.body, header: (name) => found.headers.get(name) }
  }
}

/** `update=standard` is Intel's default; hex digits in addresses may have either case. */
function withoutUpdate(url: string): string {
  return url.toLowerCase().replace(/[?&]update=standard$/, '')
}
