import { Agent, fetch as undiciFetch } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createClient, type TransportName } from '../../src/client/index.ts'
import { makeHpkeKey } from '../../src/enclave/hpke/hpke-key.ts'
import { clientOf, newKeyPair, startFakeRouter, type FakeRouter } from '../support/fake-router.ts'
import { startManInTheMiddle, type ManInTheMiddle } from '../support/man-in-the-middle.ts'
import { LOG_POLICY } from '../support/release-log.ts'
import { makeWorld, type World } from '../support/synthetic-world.ts'
import {
  HPKE_TAMPERINGS,
  LOG_TAMPERINGS,
  TAMPERINGS,
  type Tampering,
} from '../support/tamperings.ts'

/** One changed byte anywhere in a proof: the library names it, and not one byte of a prompt has left. */

let world: World
let host: FakeRouter

beforeAll(async () => {
  world = await makeWorld()
  host = await startFakeRouter(world)
}, 60_000)
afterAll(() => host.close())
beforeEach(() => host.misbehave({}))

async function ask(
  to: Pick<FakeRouter, 'baseURL'> = host,
  transport: TransportName = 'tls',
): Promise<Response> {
  const { options, deps } = clientOf(world, to, { transport, policy: { logPolicy: LOG_POLICY } })
  const client = createClient(options, deps)
  try {
    const prompt = {
      method: 'POST',
      body: '{"messages":"SECRET"}',
      headers: { authorization: 'SECRET' },
    }
    return await client.fetch(`${to.baseURL}/v1/chat/completions?SECRET`, prompt)
  } finally {
    await client.close()
  }
}

const TRANSPORTS = ['tls', 'ehbp'] as const

/** Over EHBP the connection proves nothing, and the HPKE key is compared in its place. */
const tamperingsOf = (transport: TransportName): readonly Tampering[] =>
  transport === 'tls'
    ? [...TAMPERINGS, ...LOG_TAMPERINGS]
    : [
        ...TAMPERINGS.filter(({ failed }) => failed !== 'tls_key'),
        ...HPKE_TAMPERINGS,
        ...LOG_TAMPERINGS,
      ]

describe.each(TRANSPORTS)('a tampered proof, with the transport %s', (transport) => {
  test.each(tamperingsOf(transport))(
    '$name is refused as $failed, and no byte of the prompt leaves',
    async (one) => {
      host.misbehave(await one.misdeeds(host))
      const before = host.received.length
      const refused: unknown = await ask(host, transport).catch((error: unknown) => error)
      expect(refused).toMatchObject({ code: 'attestation_refused' })
      expect(refused).toHaveProperty('failed', expect.arrayContaining([one.failed]))
      expect(refused).toHaveProperty('message', expect.stringContaining(`${one.failed}: `))
      expect(host.received.slice(before)).toEqual([])
    },
  )

  test('is what refuses: untouched, the same host is asked', async () => {
    const before = host.received.length
    expect((await ask(host, transport)).status).toBe(200)
    expect(host.received.slice(before)).toHaveLength(1)
  })
})

describe('a man in the middle with a certificate that everybody trusts', () => {
  let middle: ManInTheMiddle

  beforeAll(async () => {
    middle = await startManInTheMiddle(host)
  })
  afterAll(() => middle.close())
  beforeEach(() => {
    middle.meddle = undefined
  })

  /** What the attacker read, without the headers: the party that terminates TLS reads those. */
  const bodiesRead = (since: number) =>
    middle.read.slice(since).map((one) => one.slice(one.lastIndexOf('} ')))

  test('reads whatever an ordinary client sends', async () => {
    const connect = { ca: middle.authorityPem }
    const init = { method: 'POST', body: 'SECRET', dispatcher: new Agent({ connect }) }
    const answer = await undiciFetch(`${middle.baseURL}/v1/chat/completions`, init)
    expect(answer.status).toBe(200)
    expect(middle.read.join()).toContain('SECRET')
  })

  test('gets nothing of a client that compares the key of its connection', async () => {
    const [before, beyond] = [middle.read.length, host.received.length]
    await expect(ask(middle)).rejects.toMatchObject({ failed: ['tls_key'] })
    expect(middle.read.slice(before).join()).not.toContain('SECRET')
    expect(host.received.slice(beyond)).toEqual([])
  })

  test('reads no body of a client that encrypts it', async () => {
    const before = middle.read.length
    const answer = await ask(middle, 'ehbp')
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('receipt_id')
    expect(bodiesRead(before).join()).not.toContain('SECRET')
    expect(host.ehbp.opened.at(-1)).toContain('SECRET')
  })

  test('gets nothing by a key of his own in place of the one that is served', async () => {
    const { config } = await makeHpkeKey()
    middle.meddle = (path, answer) => (path === '/.well-known/hpke-keys' ? config : answer)
    const before = middle.read.length
    await expect(ask(middle, 'ehbp')).rejects.toMatchObject({ failed: ['hpke_key'] })
    expect(middle.read.slice(before).join()).not.toContain('SECRET')
  })
})

describe('a man in the middle', () => {
  test('with a certificate of his own and the evidence of the real host gets nothing', async () => {
    const middle = await startFakeRouter(world)
    middle.misbehave({ envelopeSpki: host.spki })
    await expect(ask(middle)).rejects.toMatchObject({ failed: ['tls_key'] })
    expect(middle.received).toEqual([])
    middle.close()
  })

  test('who lets the proof through and takes over the next connection gets nothing', async () => {
    const swapping = await startFakeRouter(world)
    const { options, deps } = clientOf(world, swapping)
    const client = createClient(options, deps)
    await client.verify()
    const honest = swapping.spki
    const before = swapping.received.length
    swapping.swapKey(await newKeyPair())
    swapping.misbehave({ envelopeSpki: honest })
    const requests = Array.from({ length: 3 }, () =>
      client
        .fetch(`${swapping.baseURL}/v1/chat/completions`, { method: 'POST', body: 'SECRET' })
        .catch((error: unknown) => error),
    )
    for (const outcome of await Promise.all(requests)) expect(outcome).toBeInstanceOf(Error)
    expect(swapping.received.slice(before).join()).not.toContain('SECRET')
    await client.close()
    swapping.close()
  })

  test('who takes over between the evidence and the prompt would need the connection itself', async () => {
    const dropping = await startFakeRouter(world)
    const { options, deps } = clientOf(world, dropping)
    const client = createClient(options, deps)
    const honest = dropping.spki
    const pair = await newKeyPair()
    dropping.misbehave({
      envelopeText: (text) => {
        // The evidence is right, and everything after it is another host's.
        setImmediate(() => {
          dropping.misbehave({ envelopeSpki: honest })
          dropping.swapKey(pair)
        })
        return text
      },
    })
    await expect(
      client.fetch(`${dropping.baseURL}/v1/chat/completions`, { method: 'POST', body: 'SECRET' }),
    ).rejects.toThrow(/tls_key|fetch failed/)
    expect(dropping.received).toEqual([])
    await client.close()
    dropping.close()
  })
})
