import { parentPort } from 'node:worker_threads'
import { sealEvidence } from '../../src/enclave/adapters/verified-evidence.ts'
import type { ThreadAnswer, VerifyRequest } from '../../src/enclave/isolated/messages.ts'

/**
 * An adapter's thread. The API key of its provider is the version of the bundle that this one publishes; one that is older than
 * what is remembered is refused.
 */
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
const tell = (answer: ThreadAnswer) => parentPort?.postMessage(answer)

parentPort?.on('message', (request: VerifyRequest) => void verify(request).then(tell))

async function verify({ subject, memory }: VerifyRequest): Promise<ThreadAnswer> {
  const version = Number(subject.apiKey)
  if ((memory.lastAccepted?.version ?? 0) > version) {
    return { type: 'refused', code: 'trust_bundle', checks: ['trust_bundle_version'] }
  }
  const judged = {
    checks: [],
    verification_mode: 'test',
    attestation_strength: 'hardware',
    binding: { tls_spki_sha256: 'aa'.repeat(32) },
    evidence_summary: {},
    claims: { tee: 'none' },
    endsAt: Infinity,
  }
  const evidence = await sealEvidence(judged, '{}', { now: 0, maxAgeSeconds: 3600 })
  const lastAccepted = { root: 'root', version, sha256: String(version) }
  return { type: 'verified', evidence, memory: { lastAccepted } }
}
