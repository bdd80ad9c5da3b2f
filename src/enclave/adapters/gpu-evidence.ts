import { utf8 } from '../../protocol/bytes.ts'
import { readText } from '../../protocol/read-document.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { countDevices, type GpuVerdictTexts } from '../../verify/nvidia/gpu-evidence.ts'
import type { EvidenceDeps } from './adapter.ts'
import { requestService } from './request-service.ts'

const VERDICT_URL = 'https://nras.attestation.nvidia.com/v3/attest/gpu'
const KEYS_URL = 'https://nras.attestation.nvidia.com/.well-known/jwks.json'
const MAX_ANSWER_BYTES = 1_048_576

/**
 * Sends the GPU evidence, exactly as the provider sent it, to NVIDIA's service, after checking that it is for our
 * nonce. The verdict is verified by the caller.
 * @throws EvidenceRefused when the evidence is for another nonce, NVIDIA refuses it (`gpu_claims`), or its service does
 *   not answer
 * @throws MalformedEvidence when the evidence or the answer does not match its schema
 */
export async function fetchGpuVerdict(
  payload: string,
  nonce: string,
  { webFetch }: Pick<EvidenceDeps, 'webFetch'>,
): Promise<GpuVerdictTexts> {
  countDevices(payload, nonce)
  const [verdict, keys] = await Promise.all([
    requestService(webFetch, VERDICT_URL, MAX_ANSWER_BYTES, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: utf8(payload),
    }),
    requestService(webFetch, KEYS_URL, MAX_ANSWER_BYTES),
  ])
  // If NVIDIA refuses the evidence, that is a verdict; if its service does not answer, that is an outage.
  if (verdict.status >= 500 || verdict.status === 429 || keys.status !== 200) {
    throw new EvidenceRefused('service_unreachable')
  }
  if (verdict.status !== 200) throw new EvidenceRefused('gpu', ['gpu_verdict'])
  return { tokens: readText(verdict.body, 'GPU verdict'), keys: readText(keys.body, 'GPU verdict') }
}
