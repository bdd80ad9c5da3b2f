import * as z from 'zod'
import { hex32 } from '../../../protocol/hex-schema.ts'
import type { Bytes } from '../../../protocol/bytes.ts'
import { utf8 } from '../../../protocol/bytes.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { endOfGpus, gpuVerdictSchema, summarizeGpu } from '../../nvidia/gpu-evidence.ts'
import { judgeGpus } from './gpus.ts'
import { judgeModels, modelEvidenceSchema } from './models.ts'
import {
  judgeMachine,
  machineCollateralSchema,
  machineReportData,
  summarizeMachine,
} from './machine.ts'
import { identifyReportData } from './report-data.ts'
import { readDstackReports, type DstackReport } from './report.ts'
import { requireWorkload } from './workload.ts'
import type { JudgedEvidence, JudgeOptions } from '../judged-evidence.ts'

/** Everything needed to judge a node of the dstack family, in the form kept with receipts. */
export const dstackEvidenceSchema = z.strictObject({
  adapter: z.literal('dstack'),
  /** The answer to `/attestation/report`, as it was served. */
  report: z.string(),
  /** The nonce that this program sent. */
  nonce: hex32,
  /** The TLS key of the peer that served the report. */
  tls_spki_sha256: hex32,
  collateral: machineCollateralSchema,
  gpu: gpuVerdictSchema.nullable(),
  /** The evidence of a gateway's models, where the policy names any. */
  models: z.array(modelEvidenceSchema).max(16).optional(),
})
export type DstackEvidence = z.output<typeof dstackEvidenceSchema>

/**
 * Judges a node of the dstack family (Phala, NEAR): finds the node that holds the connection's key, then judges its
 * machine, REPORT_DATA, workload and GPUs, and the nodes behind it.
 * @throws EvidenceRefused with the code of the first step that fails
 * @throws MalformedEvidence when the report or its collateral cannot be parsed
 */
export async function judgeDstack(
  evidence: DstackEvidence,
  policy: PolicyOf<'dstack'>,
  options: JudgeOptions,
): Promise<JudgedEvidence> {
  const { nonce, tls_spki_sha256: tlsSpkiSha256 } = evidence
  const report = await pickReport(readDstackReports(utf8(evidence.report)), nonce, tlsSpkiSha256)
  const machine = await judgeMachine(report.machine, evidence.collateral, policy, options)
  await requireTlsLayout(machine.reportData, { signer: report.signer, nonce, tlsSpkiSha256 })
  const { facts, measurement } = machine
  await requireWorkload(report.appCompose, facts, policy)
  const gpu = await judgeGpus(report.nvidiaPayload, evidence, policy, options)
  const { nodes, keys, endsAt } = await judgeModels(evidence.models ?? [], nonce, policy, options)
  return {
    verification_mode: machine.tee === 'tdx' ? 'dstack-tdx' : 'dstack-snp',
    attestation_strength: machine.strength,
    checks: [
      ...machine.checks,
      'nonce',
      'tls_key',
      'report_data',
      'compose_hash',
      ...(gpu === undefined ? [] : ['gpu']),
      ...(nodes.length > 0 ? ['models'] : []),
    ],
    binding: { tls_spki_sha256: tlsSpkiSha256 },
    evidence_summary: {
      ...summarizeMachine(machine),
      signing_algo: report.signer.algorithm,
      signing_address: report.signer.address,
      gpu: gpu === undefined ? null : summarizeGpu(gpu),
      ...(nodes.length > 0 && { models: [...nodes] }),
    },
    claims: { tee: machine.tee, measurement },
    endsAt: Math.min(machine.endsAt, endsAt, gpu === undefined ? Infinity : endOfGpus(gpu)),
    messageKey: keys.length > 0 ? { ...report.signer, behind: keys } : report.signer,
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

/** Finds the node at the other end of this connection. If there is none, throws the first node's failure. */
export async function pickReport(
  reports: readonly DstackReport[],
  nonce: string,
  tlsSpkiSha256: string,
): Promise<DstackReport> {
  let refusal: unknown
  for (const report of reports) {
    try {
      const expected = { signer: report.signer, nonce, tlsSpkiSha256 }
      // One after the other: fleets are small, and the first node usually matches.
      await requireTlsLayout(machineReportData(report.machine), expected)
      return report
    } catch (error) {
      refusal ??= error
    }
  }
  throw refusal
}
