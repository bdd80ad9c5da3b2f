import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  ADAPTER_THREAD,
  afterReal,
  isolateAdapters,
  THREAD_LIMITS,
  type After,
  type ThreadLimits,
} from '../../../src/enclave/isolated/isolated-adapter.ts'
import { makeReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { TINFOIL_MEASUREMENT, tinfoilV3 } from '../../../src/standin/attested-tinfoil.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { runChain } from '../../support/run-authority.ts'
import { newKdsWaits } from '../../../src/enclave/snp/kds.ts'

/** A machine under load needs seconds to start a thread. */
const PATIENCE = 120_000
const EXHAUSTING = 'judging the evidence took more time or memory than any honest evidence does'

let tls: DaemonTls
let chain: SimulatedChain
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[tls, chain] = await Promise.all([makeTlsIdentity([], new Date()), runChain()])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

interface Fault {
  readonly documents: string[]
  readonly limits?: Partial<ThreadLimits>
  readonly after?: After
}

/** A provider whose next documents are these, the last one for ever. */
async function startHostile({ documents, limits = {}, after = afterReal }: Fault) {
  world = await startAttested({
    attestation: { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT] },
    documents: () => (documents.length > 1 ? documents.shift() : documents[0]),
    tls,
    openAdapter: isolateAdapters({
      program: new URL('../../support/hostile-adapter-thread.ts', import.meta.url),
      data: { stateDir: '/nonexistent', kdsWaits: newKdsWaits(), ownSimulated: 'refuse' },
      limits: { ...THREAD_LIMITS, ...limits },
      after,
    }),
  })
  return world
}

/** Time that passes only when a test says so. */
function heldTime() {
  const waits = new Set<{ ms: number; run: () => void }>()
  let begun = 0
  const after: After = (ms, run) => {
    const wait = { ms, run }
    waits.add(wait)
    if (ms === THREAD_LIMITS.silenceMs) begun++
    return () => void waits.delete(wait)
  }
  return {
    after,
    /** How many times a silence was begun to be measured. */
    silences: () => begun,
    /** Lets this limit be reached, where it counts. */
    reach: (limit: 'silenceMs' | 'verifyMs') => {
      const reached = [...waits].filter(({ ms }) => ms === THREAD_LIMITS[limit])
      for (const { run } of reached) run()
      return reached.length
    },
  }
}

/** Resolves when a hostile thread says that it is about to commit this fault. */
function committed(fault: string): Promise<void> {
  const faults = new BroadcastChannel('faults of a hostile thread')
  return new Promise((resolve) => {
    faults.addEventListener('message', ({ data }) => {
      if (data !== fault) return
      faults.close()
      resolve()
    })
  })
}

/** Whether a hostile thread says within half a second that it is there. */
async function threadAnswers(): Promise<boolean> {
  const faults = new BroadcastChannel('faults of a hostile thread')
  const answered = new Promise<boolean>((resolve) => {
    faults.addEventListener('message', () => resolve(true))
    setTimeout(() => resolve(false), 500)
  })
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  faults.postMessage('is a thread there?')
  return answered.finally(() => faults.close())
}

describe('an adapter in a thread of its own', { timeout: PATIENCE }, () => {
  it('proves a provider as it would elsewhere', async () => {
    world = await startAttested({
      attestation: { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT] },
      documents: ({ searchParams }) =>
        tinfoilV3({ chain, tlsSpkiSha256: tls.spkiSha256 }, searchParams.get('nonce') ?? ''),
      tls,
      openAdapter: isolateAdapters({
        program: ADAPTER_THREAD,
        data: {
          stateDir: '/nonexistent',
          kdsWaits: newKdsWaits(),
          ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 },
        },
        limits: THREAD_LIMITS,
        after: heldTime().after,
      }),
    })
    const { settled, link, proofs } = world
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    const hop = proofs.hop('nova', String(answer.headers['x-cmr-evidence-sha256']))
    expect(hop?.block).toMatchObject({ verified: true, measurement: TINFOIL_MEASUREMENT })
  })

  it.each<[string, Partial<ThreadLimits>, string]>([
    ['eats memory', { heapMb: 48 }, EXHAUSTING],
    ['overflows the stack', {}, 'verification broke down'],
    ['throws in a timer', {}, 'verification broke down'],
    ['ends the thread', {}, 'verification broke down'],
  ])('is refused where a document %s, and the next one is read', async (fault, limits, reason) => {
    const { after } = heldTime()
    const { settled, standing } = await startHostile({ documents: [fault, 'holds'], limits, after })
    expect(await settled()).toMatchObject({ state: 'failed', reason })
    await expect.poll(() => standing().state, { timeout: PATIENCE }).toBe('verified')
  })

  it.each<[string, 'silenceMs' | 'verifyMs', string]>([
    ['spins', 'silenceMs', EXHAUSTING],
    ['never answers', 'verifyMs', 'the provider did not answer with its evidence'],
  ])('is ended where a document %s, and the next one is read', async (fault, limit, reason) => {
    const { after, reach } = heldTime()
    const isCommitted = committed(fault)
    const { settled, standing } = await startHostile({ documents: [fault, 'holds'], after })
    await isCommitted
    expect(standing().state).toBe('pending')
    expect(reach(limit)).toBe(1)
    expect(await settled()).toMatchObject({ state: 'failed', reason })
    await expect.poll(() => standing().state, { timeout: PATIENCE }).toBe('verified')
  })

  it('ends once a document holds', async () => {
    const { settled } = await startHostile({ documents: ['holds'] })
    expect(await settled()).toMatchObject({ state: 'verified' })
    await expect.poll(threadAnswers, { timeout: PATIENCE }).toBe(false)
  })

  it('is not counted silent before it has begun, nor while it says that it is alive', async () => {
    const { after, silences, reach } = heldTime()
    const isCommitted = committed('never answers')
    await startHostile({ documents: ['never answers'], after })
    expect(silences()).toBe(0)
    await isCommitted
    await expect.poll(silences, { timeout: PATIENCE }).toBeGreaterThan(3)
    expect(reach('silenceMs')).toBe(1)
  })

  it('falls silent by the clock where a document spins', async () => {
    const { settled } = await startHostile({ documents: ['spins'], limits: { silenceMs: 1000 } })
    expect(await settled()).toMatchObject({ state: 'failed', reason: EXHAUSTING })
  })

  it('holds up neither signatures nor links while a document spins', async () => {
    const key = await makeReceiptKey()
    const { after, reach } = heldTime()
    const isCommitted = committed('spins')
    const { settled, standing, link } = await startHostile({ documents: ['spins'], after })
    await isCommitted
    // Nothing ends the spinning but this test: what is answered now is answered meanwhile.
    for (let round = 0; round < 20; round++) {
      expect(key.sign(new Uint8Array(32))).toHaveLength(64)
      const answer = await link.post('nova', PROMPT)
      expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
      expect(standing().state).toBe('pending')
    }
    expect(reach('silenceMs')).toBe(1)
    expect(await settled()).toMatchObject({ state: 'failed', reason: EXHAUSTING })
  })
})
