import { expect, it } from 'vitest'
import { CarrierHost } from '../../../src/enclave/carrier/carrier-host.ts'
import { NO_FACTS } from '../../../src/enclave/carrier/facts.ts'
import { countersFor } from '../../../src/enclave/egress/event-memory.ts'
import { generateReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'

/** A thread under load starts slowly. */
const PATIENCE = 60_000

/** In the memory that the host shares with the program: its own place, how often it began, and whether it has ended once. */
const [OWN, STARTS, ENDED] = [0, 1, 2]

/** Says that it listens; the first one of them ends in the same moment. */
const ENDS = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { eventMemory } = workerData
  process.on('exit', () => {
    Atomics.store(eventMemory, ${ENDED}, 1)
    Atomics.notify(eventMemory, ${ENDED})
  })
  parentPort.on('message', () => {})
  const isFirst = Atomics.add(eventMemory, ${STARTS}, 1) === 0
  parentPort.postMessage({ type: 'listening', port: 9 })
  if (isFirst) process.exit()
`

/** Says that it listens and beats; the first one of them then stands still. */
const FREEZES = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { beats, eventMemory } = workerData
  setInterval(() => Atomics.add(beats, 0, 1), 50)
  const isFirst = Atomics.add(eventMemory, ${STARTS}, 1) === 0
  parentPort.postMessage({ type: 'listening', port: 9 })
  if (isFirst) setTimeout(() => Atomics.wait(eventMemory, ${OWN}, 0), 500)
`

async function hostOf(program: string, said: string[]) {
  const shared = countersFor(3)
  const host = new CarrierHost({
    link: {
      port: 0,
      host: '127.0.0.1',
      serverCertPem: '-----BEGIN ',
      serverKeyPem: '-----BEGIN ',
      workerCertPem: '-----BEGIN ',
    },
    key: await generateReceiptKey(),
    eventMemory: shared,
    place: OWN,
    maxStreams: 1_000,
    facts: () => NO_FACTS,
    proofs: { distrust: () => {} },
    answer: async () => undefined,
    log: () => {},
    // A look may be a second late before it counts for nothing, so that a busy machine has five seconds of them.
    heartbeat: { everyMs: 500, misses: 10 },
    onLost: (why) => void said.push(why),
    onRestored: () => void said.push('restored'),
    monotonic: () => performance.now(),
    program: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
  })
  return { host, shared }
}

it(
  'a carrier that listens and ends before the main thread has heard of either is started again',
  async () => {
    const said: string[] = []
    const { host, shared } = await hostOf(ENDS, said)
    const started = host.start()
    // Stands still until the thread is gone.
    Atomics.wait(shared, ENDED, 0, PATIENCE)
    Atomics.wait(shared, OWN, 0, 500)
    await started
    await expect.poll(() => said, { timeout: PATIENCE }).toEqual(['ended', 'restored'])
    expect([host.port, Atomics.load(shared, STARTS)]).toEqual([9, 2])
    await host.close()
  },
  2 * PATIENCE,
)

it(
  'a carrier that stands still is ended and started again',
  async () => {
    const said: string[] = []
    const { host, shared } = await hostOf(FREEZES, said)
    await host.start()
    await expect.poll(() => said, { timeout: PATIENCE }).toEqual(['stood still', 'restored'])
    expect(Atomics.load(shared, STARTS)).toBe(2)
    await host.close()
  },
  2 * PATIENCE,
)
