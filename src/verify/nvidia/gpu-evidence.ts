import * as z from 'zod'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { checkGpuVerdict, type GpuVerdict } from './verdict.ts'

/** More GPUs than any machine has. */
export const MAX_DEVICES = 64

const payloadSchema = z.looseObject({
  nonce: z.string(),
  evidence_list: z.array(z.looseObject({})).min(1).max(MAX_DEVICES),
})

/** A verdict of NVIDIA's service and its keys, as served text. */
export const gpuVerdictSchema = z.strictObject({ tokens: z.string(), keys: z.string() })
export type GpuVerdictTexts = z.output<typeof gpuVerdictSchema>

/**
 * Counts the devices in a provider's GPU evidence, after checking that it is for our nonce.
 * @throws EvidenceRefused when the evidence is for another nonce
 * @throws MalformedEvidence when the evidence cannot be parsed
 */
export function countDevices(payload: string, nonce: string): number {
  const document = 'GPU evidence'
  const { nonce: bound, evidence_list: list } = readDocument(
    payloadSchema,
    parseStrictJson(payload, document),
    document,
  )
  if (bound.toLowerCase() !== nonce) throw new EvidenceRefused('gpu', ['gpu_nonce'])
  return list.length
}

/**
 * Verifies a verdict on a provider's GPU evidence. It proves that NVIDIA's service accepted evidence of such GPUs for
 * our nonce, not that they are in the machine of the CPU's quote.
 * @throws EvidenceRefused `gpu` when the nonce differs or the verdict does not hold
 * @throws MalformedEvidence when the evidence, the verdict or the key set cannot be parsed
 */
export async function judgeGpuVerdict(
  payload: string,
  { tokens, keys }: GpuVerdictTexts,
  { nonce, now }: { readonly nonce: string; readonly now: number },
): Promise<GpuVerdict> {
  return checkGpuVerdict(
    parseStrictJson(tokens, 'GPU verdict'),
    parseStrictJson(keys, "NVIDIA's key set"),
    { nonce, devices: countDevices(payload, nonce), now },
  )
}

/** Devices whose own certificates and reports were verified. */
export interface ReportedDevices {
  readonly devices: number
  /** When the first of their certificates expires, in milliseconds since 1970. */
  readonly endsAt: number
}

/** The result of judging GPU evidence; at least one of the two is present. */
export interface JudgedGpus {
  /** The verdict of NVIDIA's service. */
  readonly verdict: GpuVerdict | undefined
  readonly reported: ReportedDevices | undefined
}

/** The earliest end of anything that the result depends on, in milliseconds since 1970. */
export function endOfGpus({ verdict, reported }: JudgedGpus): number {
  return Math.min(verdict?.endsAt ?? Infinity, reported?.endsAt ?? Infinity)
}

/** The summary of the GPUs for a receipt: what was verified here, and what NVIDIA's service states. */
export function summarizeGpu({ verdict, reported }: JudgedGpus) {
  const own = ['device_certificates', 'report_signature']
  return {
    devices: verdict?.devices ?? reported?.devices ?? 0,
    models: [...(verdict?.models ?? [])],
    drivers: [...(verdict?.drivers ?? [])],
    verified: true,
    source: verdict === undefined ? 'device_report' : 'nvidia_remote_verdict',
    /** Checks that this program made. */
    verified_here: [
      ...(verdict === undefined
        ? []
        : ['verdict_signature', 'dates', 'nonce', 'device_count', 'distinct_devices']),
      ...(reported === undefined ? [] : [...own, 'report_nonce', 'distinct_device_keys']),
    ],
    /** Checks that NVIDIA's service states it made; not repeated here. */
    word_of_nvidia:
      verdict === undefined
        ? []
        : [...(reported === undefined ? own : []), 'measurements', 'secure_boot', 'revocation'],
    bound_to_cpu: false,
  }
}
