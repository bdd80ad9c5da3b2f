import { equalBytes } from '../../protocol/bytes.ts'
import type { EvidenceSubject, EvidenceTools } from './adapter.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { gatherCollateral, pcsOverWeb, type PcsSource } from './intel-collateral.ts'
import { demandTdxState, summarizeTdx, tdxMeasurement } from './tdx-state.ts'
import type { TinfoilCollateral, TinfoilDocument, TinfoilVerdict } from './tinfoil.ts'

/**
 * Judges the TDX quote of a document: collateral -> quote -> platform state -> REPORT_DATA -> measurement. RTMR3 must
 * be untouched. The collateral comes with the document, or from Intel. Throws `EvidenceRefused`.
 */
export async function judgeTinfoilTdx(
  { evidence, reportData, collateral }: TinfoilDocument,
  { policy }: EvidenceSubject<'tinfoil'>,
  { verifyQuote, webFetch, now }: EvidenceTools,
): Promise<TinfoilVerdict> {
  const source = collateral.pcs ? pcsFromDocument(collateral.pcs) : pcsOverWeb(webFetch)
  const gathered = await gatherCollateral(evidence, source)
  const quote = verifyQuote(evidence, gathered, now())
  demandTdxState(quote, policy.tcb_statuses)
  if (!equalBytes(quote.reportData, reportData)) {
    throw new EvidenceRefused('hardware', ['report_data'])
  }
  const untouched = quote.rtMr[3].every((byte) => byte === 0)
  if (!untouched || !policy.allowed_measurements.includes(tdxMeasurement(quote))) {
    throw new EvidenceRefused('measurement')
  }
  return {
    strength: 'hardware',
    claims: { tee: 'tdx', measurement: tdxMeasurement(quote) },
    summary: summarizeTdx(quote),
    fetched: collateral.pcs === undefined ? JSON.stringify(gathered) : null,
  }
}

/** Intel's answers as the document brings them. What it lacks cannot be had. */
function pcsFromDocument(replies: NonNullable<TinfoilCollateral['pcs']>): PcsSource {
  return async (url) => {
    const wanted = withoutUpdate(url)
    const found = [...replies].find(([address]) => withoutUpdate(address) === wanted)?.[1]
    if (found === undefined) throw new EvidenceRefused('hardware', ['collateral'])
    return { body: found.body, header: (name) => found.headers.get(name) }
  }
}

/** `update=standard` is what Intel answers anyway; hex digits in addresses come in both cases. */
function withoutUpdate(url: string): string {
  return url.toLowerCase().replace(/[?&]update=standard$/, '')
}
