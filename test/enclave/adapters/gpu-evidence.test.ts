import { describe, expect, it } from 'vitest'
import { fetchGpuVerdict } from '../../../src/enclave/adapters/gpu-evidence.ts'

describe('GPU evidence', () => {
  const nonce = 'c5'.repeat(32)
  const list = [
    { arch: 'HOPPER', certificate: 'Y2VydGlmaWNhdGU=', evidence: 'ZXZpZGVuY2U=', nonce },
  ]
  const payload = JSON.stringify({ nonce, arch: 'HOPPER', evidence_list: list })

  it('is sent to NVIDIA exactly as it came', async () => {
    const sent: string[] = []
    const webFetch: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      if (request.method === 'POST') sent.push(await request.text())
      return new Response('', { status: 503 })
    }
    const judging = fetchGpuVerdict(payload, nonce, { webFetch })
    await expect(judging).rejects.toMatchObject({
      code: 'service_unreachable',
      message: 'a service that verification needs did not answer',
    })
    expect(sent).toEqual([payload])
  })

  it('for another nonce is sent nowhere', async () => {
    const judging = fetchGpuVerdict(payload, 'ab'.repeat(32), {
      webFetch: () => Promise.reject(new Error('sent')),
    })
    await expect(judging).rejects.toMatchObject({
      code: 'gpu',
      message: 'the GPU evidence does not hold (gpu_nonce)',
    })
  })
})
