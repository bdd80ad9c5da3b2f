import * as z from 'zod'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { checkGpuVerdict, type GpuVerdict } from './verdict.ts'

/** More GPUs than any machine has. */
const MAX_DEVICES = 64

const payloadSchema = z.looseObject({
  nonce: z.string(),
  evidence_list: z.array(z.looseObject({})).min(1).max(MAX_DEVICES),
})

/** A verdict of NVIDIA's service and its keys, as text as they were served. */
export const gpuVerdictSchema = z.strictObject({ tokens: z.string(), keys: z.string() })
export type GpuVerdictTexts = z.output<typeof gpuVerdictSchema>

/**
 * How many devices a provider's GPU evidence is of, once it is known to be made for our nonce.
 * @throws EvidenceRefused when the evidence is for another nonce
 * @throws MalformedEvidence when the evidence cannot be read
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
 * Judges a verdict on a provider's GPU evidence. It proves that NVIDIA's service found such GPUs to have answered our
 * nonce, not that they sit in the machine of the CPU's quote.
 * @throws EvidenceRefused when the evidence does not meet these rules
 * @throws MalformedEvidence when the input is malformed
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

/** What a receipt says of the GPUs: whose word it is, and what was verified beside it. */
export function summarizeGpu({ devices, models, drivers }: GpuVerdict) {
  return {
    devices,
    models: [...models],
    drivers: [...drivers],
    verified: true,
    source: 'nvidia_remote_verdict',
    /** Checked when the evidence was judged. */
    verified_here: ['verdict_signature', 'dates', 'nonce', 'device_count', 'distinct_devices'],
    /** Said by NVIDIA's service, and believed. */
    word_of_nvidia: ['device_certificates', 'report_signature', 'measurements', 'secure_boot'],
    bound_to_cpu: false,
  }
}
