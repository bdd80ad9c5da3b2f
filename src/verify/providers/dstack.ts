import * as z from 'zod'
import type { Bytes } from '../../protocol/bytes.ts'
import { utf8 } from '../../protocol/bytes.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { gpuVerdictSchema, summarizeGpu } from '../nvidia/gpu-evidence.ts'
import { quoteReportData } from '../tdx/quote-layout.ts'
import { requireTdxState, summarizeTdx, tdxMeasurement } from '../tdx/state.ts'
import { storedCollateralSchema } from '../tdx/stored-collateral.ts'
import { judgeGpus } from './dstack-gpus.ts'
import { judgeModels, modelEvidenceSchema } from './dstack-models.ts'
import { replayEventLog } from './dstack-event-log.ts'
import { identifyReportData } from './dstack-report-data.ts'
import { readDstackReports, type DstackReport } from './dstack-report.ts'
import { checkWorkload } from './dstack-workload.ts'
import { OS_UNPINNED, type JudgedEvidence, type JudgeOptions } from './judged-evidence.ts'

const hex32 = z.string().regex(/^[0-9a-f]{64}$/)

/** Everything needed to judge a node of the dstack family, in the form kept with receipts. */
export const dstackEvidenceSchema = z.strictObject({
  adapter: z.literal('dstack'),
  /** The answer to `/attestation/report`, as it was served. */
  report: z.string(),
  /** The nonce that this program sent. */
  nonce: hex32,
  /** The TLS key of the peer that served the report. */
  tls_spki_sha256: hex32,
  collateral: storedCollateralSchema,
  gpu: gpuVerdictSchema.nullable(),
  /** The evidence of a gateway's models, where the policy names any. */
  models: z.array(modelEvidenceSchema).max(16).optional(),
})
export type DstackEvidence = z.output<typeof dstackEvidenceSchema>

/**
 * Judges a node of the dstack family (Phala, NEAR): the node whose key the connection has -> quote -> platform state
 * -> REPORT_DATA -> event log -> workload -> GPUs.
 * @throws EvidenceRefused with the code of the first step that fails
 * @throws MalformedEvidence when the report or its collateral cannot be parsed
 */
export async function judgeDstack(
  evidence: DstackEvidence,
  policy: PolicyOf<'dstack'>,
  options: JudgeOptions,
): Promise<JudgedEvidence> {
  const { verifyQuote, now } = options
  const { nonce, tls_spki_sha256: tlsSpkiSha256 } = evidence
  const report = await pickReport(readDstackReports(utf8(evidence.report)), nonce, tlsSpkiSha256)
  const quote = await verifyQuote(report.quote, evidence.collateral, now)
  requireTdxState(quote, policy)
  await requireTlsLayout(quote.reportData, { signer: report.signer, nonce, tlsSpkiSha256 })
  const facts = await replayEventLog(report.eventLog, quote.rtMr[3])
  await checkWorkload({ report, quote, facts, policy })
  const gpu = await judgeGpus(report.nvidiaPayload, evidence, policy, options)
  const models = await judgeModels(evidence.models ?? [], nonce, policy, options)
  const osPinned = policy.allowed_measurements !== undefined
  return {
    verification_mode: 'dstack-tdx',
    attestation_strength: osPinned ? 'hardware' : OS_UNPINNED,
    binding: { tls_spki_sha256: tlsSpkiSha256 },
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
      gpu: gpu === undefined ? null : summarizeGpu(gpu),
      ...(models.length > 0 && { models: [...models] }),
    },
    claims: { tee: 'tdx', measurement: tdxMeasurement(quote) },
    messageKey: report.signer,
    onRecord: gpu?.verdict === undefined ? [] : [GPU_KEYS],
  }
}

const GPU_KEYS =
  "the GPU verdict is judged by the keys of NVIDIA's service as the router recorded them; nothing here ties them to NVIDIA"

interface Expectation {
  readonly nonce: string
  readonly tlsSpkiSha256: string
  readonly signer: DstackReport['signer']
}

async function requireTlsLayout(reportData: Bytes, expected: Expectation): Promise<void> {
  const layout = await identifyReportData(reportData, expected)
  if (layout !== 'tls') throw new EvidenceRefused('no_binding')
}

/** The node at the other end of this connection; if there is none, the first node's failure is thrown. */
export async function pickReport(
  reports: readonly DstackReport[],
  nonce: string,
  tlsSpkiSha256: string,
): Promise<DstackReport> {
  let refusal: unknown
  for (const report of reports) {
    try {
      const expected = { signer: report.signer, nonce, tlsSpkiSha256 }
      // eslint-disable-next-line no-await-in-loop -- fleets are small, and most often the first one is it
      await requireTlsLayout(quoteReportData(report.quote), expected)
      return report
    } catch (error) {
      refusal ??= error
    }
  }
  throw refusal
}
