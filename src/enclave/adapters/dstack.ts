import { fromUtf8, utf8, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Adapter, EvidenceSubject, EvidenceTools } from './adapter.ts'
import { checkWorkload } from './dstack-workload.ts'
import { replayEventLog, type BootFacts } from './dstack-event-log.ts'
import { identifyReportData } from './dstack-report-data.ts'
import { readDstackReports, type DstackReport } from './dstack-report.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { judgeGpuEvidence, type GpuResult } from './gpu-evidence.ts'
import { gatherCollateral, pcsOverWeb } from './intel-collateral.ts'
import { quoteReportData } from './quote-layout.ts'
import { demandTdxState, summarizeTdx, tdxMeasurement } from './tdx-state.ts'
import type { QuoteCollateral, VerifiedQuote } from './tdx-quote.ts'
import type { VerifiedEvidence } from './verified-evidence.ts'

/** Reports with GPU evidence have some 300 KiB; a fleet sends several. */
const MAX_REPORT_BYTES = 8_388_608

type Subject = EvidenceSubject<'dstack'>

/**
 * The dstack family (Phala, NEAR): report for our nonce -> the node whose key this connection has -> quote -> platform
 * state -> REPORT_DATA -> event log -> workload -> GPUs. A node whose quote binds no TLS key is refused.
 */
export const dstackAdapter: Adapter<'dstack'> = {
  webPki: true,
  open: (subject, tools) => async () => {
    const nonce = tools.newNonce()
    const { body, tlsSpkiSha256 } = await fetchReport(subject, tools, nonce)
    const report = await pickReport(readDstackReports(body), nonce, tlsSpkiSha256)
    const collateral = await gatherCollateral(report.quote, pcsOverWeb(tools.webFetch))
    const quote = tools.verifyQuote(report.quote, collateral, tools.now())
    demandTdxState(quote, subject.policy.tcb_statuses)
    await demandTlsLayout(quote.reportData, { signer: report.signer, nonce, tlsSpkiSha256 })
    const facts = await replayEventLog(report.eventLog, quote.rtMr[3])
    await checkWorkload({ report, quote, facts, policy: subject.policy })
    const gpu = await judgeGpus(report, nonce, subject, tools)
    const proven = { report, quote, facts, gpu, collateral, tlsSpkiSha256 }
    return describe({ ...proven, body, nonce, subject, now: tools.now() })
  },
}

function fetchReport({ baseUrl, policy, apiKey }: Subject, tools: EvidenceTools, nonce: string) {
  const query = new URLSearchParams({
    nonce,
    signing_algo: policy.signing_algo,
    include_tls_fingerprint: 'true',
    version: '2',
  })
  return tools.observedFetch({
    url: `${baseUrl}/attestation/report?${query.toString()}`,
    maxBytes: MAX_REPORT_BYTES,
    webPki: dstackAdapter.webPki,
    ...(apiKey === undefined ? {} : { headers: { authorization: `Bearer ${apiKey}` } }),
  })
}

interface Expectation {
  readonly nonce: string
  readonly tlsSpkiSha256: string
  readonly signer: DstackReport['signer']
}

async function demandTlsLayout(reportData: Bytes, expected: Expectation): Promise<void> {
  const layout = await identifyReportData(reportData, expected)
  if (layout !== 'tls') throw new EvidenceRefused('no_binding')
}

/** Of several nodes the one at the other end of this connection; the reason is that of the first where none is. */
async function pickReport(
  reports: readonly DstackReport[],
  nonce: string,
  tlsSpkiSha256: string,
): Promise<DstackReport> {
  let refusal: unknown
  for (const report of reports) {
    try {
      const expected = { signer: report.signer, nonce, tlsSpkiSha256 }
      // eslint-disable-next-line no-await-in-loop -- fleets are small, and most often the first one is it
      await demandTlsLayout(quoteReportData(report.quote), expected)
      return report
    } catch (error) {
      refusal ??= error
    }
  }
  throw refusal
}

/** Where GPUs are optional a service in trouble leaves them unproven; evidence that does not hold never passes. */
async function judgeGpus(
  { nvidiaPayload }: DstackReport,
  nonce: string,
  { policy }: Subject,
  tools: EvidenceTools,
): Promise<GpuResult | undefined> {
  const optional = policy.gpu === 'optional'
  if (nvidiaPayload === undefined) {
    if (optional) return undefined
    throw new EvidenceRefused('gpu', ['gpu_missing'])
  }
  try {
    return await judgeGpuEvidence(nvidiaPayload, nonce, tools)
  } catch (error) {
    if (optional && error instanceof EvidenceRefused && error.isOutage) return undefined
    throw error
  }
}

interface Proven {
  readonly report: DstackReport
  readonly quote: VerifiedQuote
  readonly facts: BootFacts
  readonly gpu: GpuResult | undefined
  readonly collateral: QuoteCollateral
  readonly tlsSpkiSha256: string
  readonly body: Bytes
  readonly nonce: string
  readonly subject: Subject
  readonly now: number
}

async function describe(proven: Proven): Promise<VerifiedEvidence> {
  const { report, quote, facts, gpu, collateral, subject, now } = proven
  const raw = JSON.stringify({
    adapter: 'dstack',
    report: fromUtf8(proven.body),
    nonce: proven.nonce,
    collateral,
    gpu: gpu === undefined ? null : { tokens: gpu.tokens, keys: gpu.keys },
  })
  const osPinned = subject.policy.allowed_measurements !== undefined
  return {
    verified: true,
    verification_mode: 'dstack-tdx',
    attestation_strength: osPinned ? 'hardware' : 'hardware-os-unpinned',
    binding: { tls_spki_sha256: proven.tlsSpkiSha256 },
    verified_at: Math.floor(now / 1000),
    expires_at: Math.floor(now / 1000) + subject.policy.max_age_seconds,
    evidence_digest: await sha256Hex(raw),
    evidence_summary: {
      ...summarizeTdx(quote),
      nonce_bound: true,
      compose_hash: facts.composeHash,
      os_image_hash: facts.osImageHash ?? null,
      app_id: facts.appId ?? null,
      instance_id: facts.instanceId ?? null,
      os_pinned: osPinned,
      signing_algo: report.signer.algorithm,
      signing_address: report.signer.address,
      gpu: gpu === undefined ? null : { ...summarizeGpu(gpu), bound_to_cpu: false },
    },
    evidence_raw: utf8(raw),
    claims: { tee: 'tdx', measurement: tdxMeasurement(quote) },
    messageKey: report.signer,
  }
}

function summarizeGpu({ verdict: { devices, models, drivers } }: GpuResult) {
  return { devices, models: [...models], drivers: [...drivers], verified: true }
}
