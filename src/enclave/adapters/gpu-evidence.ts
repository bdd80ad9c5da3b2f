import { z } from 'zod'
import { utf8 } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import type { EvidenceTools } from './adapter.ts'
import { askService } from './ask-service.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { checkGpuVerdict, type GpuVerdict } from './nvidia-verdict.ts'

const VERDICT_URL = 'https://nras.attestation.nvidia.com/v3/attest/gpu'
const KEYS_URL = 'https://nras.attestation.nvidia.com/.well-known/jwks.json'
const MAX_ANSWER_BYTES = 1_048_576

/** More GPUs than any machine has. */
const MAX_DEVICES = 64

const payloadSchema = z.looseObject({
  nonce: z.string(),
  evidence_list: z.array(z.looseObject({})).min(1).max(MAX_DEVICES),
})

/** A verdict, and what it takes to look at it again: the tokens and the keys as they were served. */
export interface GpuResult {
  readonly verdict: GpuVerdict
  readonly tokens: string
  readonly keys: string
}

/**
 * Has NVIDIA's service judge the GPU evidence exactly as the provider gave it, and checks the signed verdict. It
 * proves that such GPUs answered our nonce, not that they sit in the machine of the CPU's quote. Throws
 * `EvidenceRefused` or `MalformedEvidence`.
 */
export async function judgeGpuEvidence(
  payload: string,
  nonce: string,
  { webFetch, now }: Pick<EvidenceTools, 'webFetch' | 'now'>,
): Promise<GpuResult> {
  const document = 'GPU evidence'
  const { nonce: bound, evidence_list: list } = readDocument(
    payloadSchema,
    parseStrictJson(payload, document),
    document,
  )
  if (bound.toLowerCase() !== nonce) throw new EvidenceRefused('gpu', ['gpu_nonce'])
  const [verdict, keys] = await Promise.all([
    askService(webFetch, VERDICT_URL, MAX_ANSWER_BYTES, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: utf8(payload),
    }),
    askService(webFetch, KEYS_URL, MAX_ANSWER_BYTES),
  ])
  // A refusal of the evidence is an answer; a service in trouble is not.
  if (verdict.status >= 500 || verdict.status === 429 || keys.status !== 200) {
    throw new EvidenceRefused('service_unreachable')
  }
  if (verdict.status !== 200) throw new EvidenceRefused('gpu', ['gpu_verdict'])
  const expected = { nonce, devices: list.length, now: now() }
  return {
    verdict: await checkGpuVerdict(
      parseStrictJson(verdict.body, 'GPU verdict'),
      parseStrictJson(keys.body, "NVIDIA's key set"),
      expected,
    ),
    tokens: new TextDecoder().decode(verdict.body),
    keys: new TextDecoder().decode(keys.body),
  }
}
