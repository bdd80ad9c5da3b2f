import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import {
  ADAPTER_THREAD,
  isolateAdapters,
  THREAD_LIMITS,
  type ThreadLimits,
} from '../../../src/enclave/isolated/isolated-adapter.ts'
import { makeReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { makeSimulatedChain, type SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { TINFOIL_MEASUREMENT, tinfoilV3 } from '../../../src/standin/attested-tinfoil.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'

const HOSTILE = new URL('../../support/hostile-adapter-thread.ts', import.meta.url)
const EXHAUSTING = 'judging the evidence took more time or memory than any honest evidence does'

let tls: DaemonTls
let chain: SimulatedChain
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[tls, chain] = await Promise.all([
    makeTlsIdentity([], new Date()),
    makeSimulatedChain(Date.now()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

/** A provider whose next documents are these, the last one for ever. */
async function start(documents: string[], program: URL, limits: Partial<ThreadLimits> = {}) {
  world = await startAttested({
    attestation: { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT] },
    documents: ({ searchParams }) => {
      if (program === ADAPTER_THREAD) {
        const nonce = searchParams.get('nonce') ?? ''
        return tinfoilV3({ chain, tlsSpkiSha256: tls.spkiSha256 }, nonce)
      }
      return documents.length > 1 ? documents.shift() : documents[0]
    },
    tls,
    openAdapter: isolateAdapters({
      program,
      data: { stateDir: '/nonexistent', ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 } },
      limits: { ...THREAD_LIMITS, ...limits },
    }),
  })
  return world
}

describe('an adapter in a thread of its own', () => {
  it('proves a provider as it would elsewhere', async () => {
    const { settled, link, proofs } = await start([], ADAPTER_THREAD)
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    const hop = proofs.hop('nova', String(answer.headers['x-cmr-evidence-sha256']))
    expect(hop?.block).toMatchObject({ verified: true, measurement: TINFOIL_MEASUREMENT })
  })

  it.each<[string, Partial<ThreadLimits>, string]>([
    ['spins', { silenceMs: 3_000 }, EXHAUSTING],
    ['eats memory', { heapMb: 48 }, EXHAUSTING],
    ['overflows the stack', {}, 'verification broke down'],
    ['throws in a timer', {}, 'verification broke down'],
    ['ends the thread', {}, 'verification broke down'],
    ['never answers', { lookMs: 3_000 }, 'the provider did not answer with its evidence'],
  ])('is refused where a document %s, and the next one is read', async (fault, limits, reason) => {
    const { settled, proofs, standing } = await start([fault, 'holds'], HOSTILE, limits)
    expect(await settled()).toMatchObject({ state: 'failed', reason })
    await expect.poll(() => standing().state, { timeout: 20_000 }).toBe('verified')
    expect(proofs.list()).toHaveLength(1)
  })

  it('holds up neither signatures nor links while a document spins', async () => {
    const key = await makeReceiptKey()
    const { settled, standing, link } = await start(['spins'], HOSTILE, { silenceMs: 4_000 })
    const delay = monitorEventLoopDelay({ resolution: 10 })
    delay.enable()
    let signed = 0
    while (standing().state === 'pending') {
      const signature = key.sign(new Uint8Array(32))
      const answer = await link.post('nova', PROMPT)
      expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
      if (signature.length === 64) signed++
    }
    delay.disable()
    expect(await settled()).toMatchObject({ state: 'failed', reason: EXHAUSTING })
    expect(signed).toBeGreaterThan(20)
    expect(delay.max / 1e6).toBeLessThan(3_000)
  })
})
