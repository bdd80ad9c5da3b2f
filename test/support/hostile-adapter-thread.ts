import { parentPort } from 'node:worker_threads'
import { createObservedFetch } from '../../src/enclave/adapters/observed-fetch.ts'
import { sealEvidence } from '../../src/enclave/adapters/verified-evidence.ts'
import {
  HEARTBEAT_MS,
  type VerifyRequest,
  type ThreadAnswer,
} from '../../src/enclave/isolated/messages.ts'

/**
 * An adapter's thread whose reader has every fault that a document can use: what the provider serves is what it does.
 * Past the daemon, by a channel of its own, it says which fault it is about to commit.
 */
const faults = new BroadcastChannel('faults of a hostile thread')
faults.addEventListener('message', ({ data }) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  if (data === 'is a thread there?') faults.postMessage('a thread is here')
})
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
const tell = (answer: ThreadAnswer) => parentPort?.postMessage(answer)
setInterval(() => tell({ type: 'alive' }), HEARTBEAT_MS)
tell({ type: 'alive' })

parentPort?.on('message', (request: VerifyRequest) => void take(request))

async function take({ subject, memory }: VerifyRequest): Promise<void> {
  const { body, tlsSpkiSha256 } = await createObservedFetch(Date.now)({
    url: `${subject.baseUrl}/document`,
    maxBytes: 100,
    webPki: false,
  })
  const document = new TextDecoder().decode(body)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  faults.postMessage(document)
  await FAULTS[document]?.()
  const judged = {
    checks: [],
    verification_mode: 'test',
    attestation_strength: 'hardware',
    binding: { tls_spki_sha256: tlsSpkiSha256 },
    evidence_summary: {},
    claims: { tee: 'none' },
    endsAt: Infinity,
  }
  const times = { now: Date.now(), maxAgeSeconds: 3600 }
  tell({ type: 'verified', evidence: await sealEvidence(judged, '{}', times), memory })
}

const FAULTS: Readonly<Record<string, () => unknown>> = {
  spins() {
    for (;;);
  },
  'eats memory'() {
    const eaten: string[][] = []
    for (;;) eaten.push(Array.from({ length: 1000 }, (_, index) => `${index} of ${eaten.length}`))
  },
  'overflows the stack': function overflow(): number {
    return 1 + overflow()
  },
  'throws in a timer': () =>
    new Promise(() => {
      setTimeout(() => {
        throw new Error('from a timer')
      })
    }),
  'ends the thread': () => process.exit(0),
  'never answers': () => new Promise(() => {}),
}
