import { readText } from '../../protocol/read-document.ts'
import { judgeAci, requireAciBinding, type AciEvidence } from '../../verify/providers/aci/aci.ts'
import { readAciReport } from '../../verify/providers/aci/report.ts'
import { fetchCollateral } from '../../verify/tdx/collateral.ts'
import { judgeOptions, type Adapter, type EvidenceDeps, type EvidenceSubject } from './adapter.ts'
import { pcsOverWeb } from './intel-service.ts'
import { sealEvidence } from './verified-evidence.ts'

const MAX_REPORT_BYTES = 2_097_152

/**
 * Phala's private gateway. Fetches the report for our nonce, finds the connection's key in its keyset, fetches Intel's
 * collateral for its platform, and judges all of it. A gateway whose keyset lacks the connection's key is refused
 * before Intel's service is called.
 */
export const aciAdapter: Adapter<'aci'> = {
  webPki: true,
  open: (subject, deps) => async () => {
    const nonce = deps.newNonce()
    const { body, tlsSpkiSha256 } = await fetchReport(subject, deps, nonce)
    const text = readText(body, 'ACI report')
    const report = await readAciReport(text, nonce)
    const host = new URL(subject.baseUrl).hostname
    const options = judgeOptions(subject, deps)
    requireAciBinding(report.keyset, { tlsSpkiSha256, host, now: options.now })
    const evidence: AciEvidence = {
      adapter: 'aci',
      report: text,
      nonce,
      tls_spki_sha256: tlsSpkiSha256,
      host,
      collateral: await fetchCollateral(report.machine.quote, pcsOverWeb(deps.webFetch)),
    }
    const judged = await judgeAci(evidence, subject.policy, options)
    return sealEvidence(judged, JSON.stringify(evidence), {
      now: options.now,
      maxAgeSeconds: subject.policy.max_age_seconds,
    })
  },
}

function fetchReport(
  { baseUrl, apiKey }: EvidenceSubject<'aci'>,
  { observedFetch }: EvidenceDeps,
  nonce: string,
) {
  return observedFetch({
    url: `${baseUrl}/aci/attestation?nonce=${nonce}`,
    maxBytes: MAX_REPORT_BYTES,
    webPki: aciAdapter.webPki,
    ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }),
  })
}
