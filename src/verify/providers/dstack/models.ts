import * as z from 'zod'
import { utf8 } from '../../../protocol/bytes.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { endOfGpus, gpuVerdictSchema, summarizeGpu } from '../../nvidia/gpu-evidence.ts'
import { judgeGpus } from './gpus.ts'
import { judgeMachine, machineCollateralSchema } from './machine.ts'
import { identifyReportData } from './report-data.ts'
import { readModelReports, type DstackReport } from './report.ts'
import { requireWorkload } from './workload.ts'
import type { JudgeOptions, NodeKey } from '../judged-evidence.ts'

/**
 * A gateway's reports of the nodes behind one of its models, and the vendors' collateral for each, in the same order.
 */
export const modelEvidenceSchema = z.strictObject({
  model: z.string(),
  /** The answer to `/attestation/report?model=`, as it was served. */
  report: z.string(),
  nodes: z
    .array(
      z.strictObject({ collateral: machineCollateralSchema, gpu: gpuVerdictSchema.nullable() }),
    )
    .max(64),
})
export type ModelEvidence = z.output<typeof modelEvidenceSchema>

export type ModelsPolicy = NonNullable<PolicyOf<'dstack'>['models']>

/** A node behind a gateway, as stated in a receipt. */
export type ModelNode = {
  readonly model: string
  readonly compose_hash: string
  readonly measurement: string
  /** If false, the compose hash was reported by an operating system that was not compared with any expected value. */
  readonly os_pinned: boolean
  readonly signing_address: string
  readonly gpu: ReturnType<typeof summarizeGpu> | null
}

export interface JudgedModels {
  readonly nodes: readonly ModelNode[]
  /** The keys of these nodes, in the same order. */
  readonly keys: readonly NodeKey[]
  /** The earliest end of anything that the verdict on them depends on, in milliseconds since 1970. */
  readonly endsAt: number
}

/**
 * Judges every node that a gateway reports for every model of the policy, each for our nonce and under the policy of
 * models. Only the gateway's own attested code ensures that prompts are sent to no other nodes.
 * @throws EvidenceRefused when a model is missing, has no node, or any node does not meet the policy
 * @throws MalformedEvidence when a report cannot be read
 */
export async function judgeModels(
  evidence: readonly ModelEvidence[],
  nonce: string,
  policy: PolicyOf<'dstack'>,
  options: JudgeOptions,
): Promise<JudgedModels> {
  const { models } = policy
  if (models === undefined) return { nodes: [], keys: [], endsAt: Infinity }
  const shown = new Map(evidence.map((one) => [one.model, one]))
  const judged = models.names.map(async (name) => {
    const one = shown.get(name)
    const reports = one && readModelReports(utf8(one.report))
    if (one === undefined || reports === undefined || reports.length === 0) {
      throw new EvidenceRefused('models', ['model_missing'])
    }
    if (reports.length !== one.nodes.length) throw new EvidenceRefused('models', ['model_nodes'])
    return Promise.all(
      one.nodes.map(async (node, index) => {
        const report = reports[index]
        if (report === undefined) throw new EvidenceRefused('models', ['model_nodes'])
        const { endsAt, ...judgedNode } = await judgeNode(
          { report, nonce, ...node },
          policy,
          models,
          options,
        )
        return {
          node: { model: name, ...judgedNode },
          key: { model: name, ...report.signer },
          endsAt,
        }
      }),
    )
  })
  const all = (await Promise.all(judged)).flat()
  return {
    nodes: all.map(({ node }) => node),
    keys: all.map(({ key }) => key),
    endsAt: Math.min(...all.map(({ endsAt }) => endsAt)),
  }
}

interface NodeEvidence extends Pick<ModelEvidence['nodes'][number], 'collateral' | 'gpu'> {
  readonly report: DstackReport
  readonly nonce: string
}

async function judgeNode(
  { report, nonce, collateral, gpu }: NodeEvidence,
  policy: PolicyOf<'dstack'>,
  models: ModelsPolicy,
  options: JudgeOptions,
): Promise<Omit<ModelNode, 'model'> & Pick<JudgedModels, 'endsAt'>> {
  const nodePolicy = {
    ...policy,
    allowed_measurements: models.allowed_measurements,
    allowed_os_image_hashes: models.allowed_os_image_hashes,
    allowed_mr_config_id: undefined,
  }
  const machine = await judgeMachine(report.machine, collateral, nodePolicy, options)
  const { signer, tlsSpkiSha256 = '00'.repeat(32) } = report
  await identifyReportData(machine.reportData, { signer, nonce, tlsSpkiSha256 })
  const { facts, measurement, os } = machine
  await requireWorkload(report.appCompose, facts, models)
  const gpus = await judgeGpus(report.nvidiaPayload, { gpu, nonce }, policy, options)
  return {
    compose_hash: facts.composeHash,
    measurement,
    os_pinned: os.os_pinned,
    signing_address: signer.address,
    gpu: gpus === undefined ? null : summarizeGpu(gpus),
    endsAt: Math.min(machine.endsAt, gpus === undefined ? Infinity : endOfGpus(gpus)),
  }
}
