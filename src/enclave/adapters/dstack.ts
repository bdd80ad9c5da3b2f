import { readText } from '../../protocol/read-document.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import type { GpuVerdictTexts } from '../../verify/nvidia/gpu-evidence.ts'
import {
  judgeDstack,
  pickReport,
  type DstackEvidence,
} from '../../verify/providers/dstack/dstack.ts'
import type { ModelEvidence } from '../../verify/providers/dstack/models.ts'
import {
  readDstackReports,
  readModelReports,
  type DstackReport,
} from '../../verify/providers/dstack/report.ts'
import { judgeOptions, type Adapter, type EvidenceSubject, type EvidenceDeps } from './adapter.ts'
import { fetchGpuVerdict } from './gpu-evidence.ts'
import { fetchMachineCollateral } from './machine-collateral.ts'
import { sealEvidence } from './verified-evidence.ts'

/** A report with GPU evidence takes about 300 KiB; a gateway with several nodes sends several reports. */
const MAX_REPORT_BYTES = 8_388_608

type Subject = EvidenceSubject<'dstack'>

/**
 * The dstack family (Phala, NEAR). Fetches the report for our nonce, Intel's or AMD's collateral for its platform and
 * NVIDIA's verdict on its GPUs, and judges all of it. A node whose evidence binds no TLS key is refused before any
 * vendor's service is called.
 */
export const dstackAdapter: Adapter<'dstack'> = {
  webPki: true,
  open: (subject, deps) => async () => {
    const nonce = deps.newNonce()
    const { body, tlsSpkiSha256 } = await fetchReport(subject, deps, nonce)
    const report = await pickReport(readDstackReports(body), nonce, tlsSpkiSha256)
    const evidence: DstackEvidence = {
      adapter: 'dstack',
      report: readText(body, 'dstack report'),
      nonce,
      tls_spki_sha256: tlsSpkiSha256,
      collateral: await fetchMachineCollateral(report.machine, deps),
      gpu: await fetchVerdict(report, nonce, subject, deps),
      ...(await fetchModels({ nonce, tlsSpkiSha256 }, subject, deps)),
    }
    const options = judgeOptions(subject, deps)
    const judged = await judgeDstack(evidence, subject.policy, options)
    return sealEvidence(judged, JSON.stringify(evidence), {
      now: options.now,
      maxAgeSeconds: subject.policy.max_age_seconds,
    })
  },
}

function fetchReport(
  { baseUrl, policy, apiKey }: Subject,
  deps: EvidenceDeps,
  nonce: string,
  model?: string,
) {
  const query = new URLSearchParams({
    nonce,
    signing_algo: policy.signing_algo,
    include_tls_fingerprint: 'true',
    version: '2',
    ...(model === undefined ? {} : { model }),
  })
  return deps.observedFetch({
    url: `${baseUrl}/attestation/report?${query.toString()}`,
    maxBytes: MAX_REPORT_BYTES,
    webPki: dstackAdapter.webPki,
    ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }),
  })
}

interface Gateway {
  readonly nonce: string
  readonly tlsSpkiSha256: string
}

/**
 * The reports of the nodes behind each model of the policy, fetched one after another over connections with the same
 * key.
 */
async function fetchModels(
  { nonce, tlsSpkiSha256 }: Gateway,
  subject: Subject,
  deps: EvidenceDeps,
): Promise<Pick<DstackEvidence, 'models'>> {
  const { models } = subject.policy
  if (models === undefined) return {}
  const shown: ModelEvidence[] = []
  for (const model of models.names) {
    // One after the other: a report is large, and the gateway builds a new one for each request.
    const answer = await fetchReport(subject, deps, nonce, model)
    if (answer.tlsSpkiSha256 !== tlsSpkiSha256) throw new EvidenceRefused('tls_key')
    const nodes = await Promise.all(
      readModelReports(answer.body).map(async (report) => ({
        collateral: await fetchMachineCollateral(report.machine, deps),
        gpu: await fetchVerdict(report, nonce, subject, deps),
      })),
    )
    shown.push({ model, report: readText(answer.body, 'dstack report'), nodes })
  }
  return { models: shown }
}

/**
 * NVIDIA's verdict on the GPUs; null where there is none. Where GPUs are optional, an outage of NVIDIA's service leaves
 * them unproven; evidence that the service refuses is never accepted.
 */
async function fetchVerdict(
  { nvidiaPayload }: DstackReport,
  nonce: string,
  { policy }: Subject,
  deps: EvidenceDeps,
): Promise<GpuVerdictTexts | null> {
  if (nvidiaPayload === undefined || !policy.gpu_checks.includes('nvidia_verdict')) return null
  try {
    return await fetchGpuVerdict(nvidiaPayload, nonce, deps)
  } catch (error) {
    if (policy.gpu === 'optional' && error instanceof EvidenceRefused && error.isOutage) return null
    throw error
  }
}
