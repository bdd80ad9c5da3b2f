import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { verifyDeviceReports } from '../../nvidia/device-report.ts'
import {
  judgeGpuVerdict,
  type GpuVerdictTexts,
  type JudgedGpus,
} from '../../nvidia/gpu-evidence.ts'
import type { JudgeOptions } from '../judged-evidence.ts'

/**
 * Judges GPU evidence. Evidence that is present must be valid, whatever the policy; it may be absent only where GPUs
 * are optional.
 * @throws EvidenceRefused `gpu`
 * @throws MalformedEvidence when the evidence cannot be read
 */
export async function judgeGpus(
  nvidiaPayload: string | undefined,
  { gpu, nonce }: { readonly gpu: GpuVerdictTexts | null; readonly nonce: string },
  policy: Pick<PolicyOf<'dstack'>, 'gpu' | 'gpu_checks'>,
  { now, gpuRootSpkiSha256 }: JudgeOptions,
): Promise<JudgedGpus | undefined> {
  if (nvidiaPayload === undefined) {
    if (policy.gpu === 'optional') return undefined
    throw new EvidenceRefused('gpu', ['gpu_missing'])
  }
  const root = { rootSpkiSha256: gpuRootSpkiSha256 }
  const reported = await verifyDeviceReports(nvidiaPayload, { nonce, now, ...root })
  const verdict =
    gpu === null ? undefined : await judgeGpuVerdict(nvidiaPayload, gpu, { nonce, now })
  const held = { nvidia_verdict: verdict !== undefined, device_report: reported !== undefined }
  const missing = policy.gpu_checks.filter((name) => !held[name])
  if (missing.length > 0 && policy.gpu === 'required') throw new EvidenceRefused('gpu', missing)
  return verdict === undefined && reported === undefined ? undefined : { verdict, reported }
}
