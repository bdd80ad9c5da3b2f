import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { judgeGpuEvidence } from '../../../src/enclave/adapters/gpu-evidence.ts'

const FILE = join(
  import.meta.dirname,
  '../../../../shared/data/attestation/gpu/hopper_evidence.json',
)

describe.skipIf(!existsSync(FILE))('real GPU evidence', () => {
  const list: { nonce: string }[] = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : []
  const nonce = list[0]?.nonce ?? ''
  const payload = JSON.stringify({ nonce, arch: 'HOPPER', evidence_list: list })

  it('is sent to NVIDIA exactly as it came', async () => {
    const sent: string[] = []
    const webFetch: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      if (request.method === 'POST') sent.push(await request.text())
      return new Response('', { status: 503 })
    }
    const judging = judgeGpuEvidence(payload, nonce, { webFetch, now: Date.now })
    await expect(judging).rejects.toMatchObject({
      code: 'service_unreachable',
      message: 'a service that verification needs did not answer',
    })
    expect(sent).toEqual([payload])
  })

  it('for another nonce is sent nowhere', async () => {
    const judging = judgeGpuEvidence(payload, 'ab'.repeat(32), {
      webFetch: () => Promise.reject(new Error('sent')),
      now: Date.now,
    })
    await expect(judging).rejects.toMatchObject({
      code: 'gpu',
      message: 'the GPU evidence does not hold (gpu_nonce)',
    })
  })
})
