import { EventEmitter } from 'node:events'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { FromDaemon } from '../../../src/protocol/boot.ts'
import { linkStateSchema, signResponseSchema } from '../../../src/protocol/link.ts'
import { printStreamSpec } from '../../../src/protocol/stream-record.ts'
import type { Changes } from '../../../src/enclave/carrier/changes.ts'
import { startCarriers, type Carriers } from '../../../src/enclave/carrier/carriers.ts'
import { hopKey, SINGLE_ROW, type Facts } from '../../../src/enclave/carrier/facts.ts'
import { generateReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { jsonAnswer, readJson } from '../../../src/enclave/link/answer.ts'
import type { AnswerRoute } from '../../../src/enclave/link/dispatch.ts'
import type { ChannelEvidence, ProviderChannel } from '../../../src/enclave/proofs.ts'
import { describeInferenceHop } from '../../../src/enclave/proofs/inference-hop.ts'
import { evidenceFor } from '../../support/proven-channel.ts'
import { startRecordingProvider, type RecordingProvider } from '../../support/recording-provider.ts'
import { CLAIMS } from '../claims-to-sign.ts'
import { callLink } from '../link-client.ts'
import { makeCertificatePair, type CertificatePair } from '../link-material.ts'

/** Two real threads, and the main thread's part around them. */

const CONFIGURATION = 'c0'.repeat(32)
/** A thread under load starts slowly. */
const PATIENCE = 60_000

let provider: RecordingProvider
let server: CertificatePair
let worker: CertificatePair
let carriers: Carriers
let proven: ProviderChannel
/** At the beginning of each test. */
let whole: Facts
let facts: Facts
let said: FromDaemon[] = []
let lost: string[] = []
let asked: unknown[] = []
let distrusted: unknown[] = []
let reverify: (stale: ChannelEvidence) => void = () => {}
const logged: unknown[] = []
const changes: Changes = new EventEmitter()

function tell(next: Facts): void {
  facts = next
  changes.emit('changed')
}

const routes: AnswerRoute[] = [
  {
    method: 'POST',
    path: '/v1/hpke',
    handle: async ({ body, url }) => {
      asked.push([url.search, await readJson(body, 16)])
      return jsonAnswer({ from: 'main' })
    },
  },
  { method: 'GET', path: '/v1/trust', handle: () => Promise.reject(new Error('a secret')) },
]

beforeAll(async () => {
  const tls = await makeTlsIdentity([], new Date())
  ;[server, worker] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
  ])
  provider = await startRecordingProvider(async (request, response) => {
    for await (const _ of request);
    if (request.url?.includes('stream')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n')
      return
    }
    const text = '{"ok":true}'
    response.writeHead(200, { 'content-length': text.length }).end(text)
  }, tls)
  const evidence = evidenceFor(tls.spkiSha256)
  proven = {
    provider: 'nova',
    baseUrl: `${provider.origin}/v1`,
    apiKey: undefined,
    webPki: false,
    evidence,
  }
  const block = {
    tee: 'sev-snp',
    verified: true,
    verification_mode: 'test',
    verified_at: 1,
    attestation_strength: 'simulated',
  }
  whole = {
    service: new Map([[SINGLE_ROW, { generation: 1, connectMs: 10_000 }]]),
    envelope: new Map([[SINGLE_ROW, { sha256: 'ee'.repeat(32), until: 4_000_000_000_000 }]]),
    providers: new Map([['nova', 'envelope']]),
    channels: new Map([['nova', proven]]),
    unattested: new Map(),
    hops: new Map([
      [
        hopKey('nova', evidence.evidence_digest),
        describeInferenceHop({ ...evidence, evidence_raw: Buffer.from('{}') }),
      ],
    ]),
    routerHops: new Map([
      [CONFIGURATION, { block, configurationSha256: CONFIGURATION, evidenceRefs: [] }],
    ]),
  }
  facts = whole
  carriers = await startCarriers({
    link: {
      port: 0,
      host: '127.0.0.1',
      serverCertPem: server.certPem,
      serverKeyPem: server.keyPem,
      workerCertPem: worker.certPem,
    },
    ports: [0, 0],
    maxStreams: 1_000,
    counts: { carrierLost: (why) => lost.push(why) },
    key: await generateReceiptKey(),
    facts: () => facts,
    proofs: {
      reverify: async (_provider, stale) => {
        reverify(stale)
        return undefined
      },
      distrust: (...of) => void distrusted.push(of),
    },
    routes,
    log: (event, fields) => void logged.push({ event, ...fields }),
    notify: (message) => void said.push(message),
    monotonic: () => performance.now(),
    changes,
  })
}, PATIENCE)

beforeEach(() => {
  tell(whole)
  said = []
  lost = []
  asked = []
  distrusted = []
  reverify = () => {}
})
afterAll(async () => {
  await carriers?.close()
  await provider?.close()
})

const call = (index: number, path: string, init?: Parameters<typeof callLink>[2]) =>
  callLink(
    { port: carriers.ports[index] ?? 0, serverCertPem: server.certPem, client: worker },
    path,
    init,
  )

const chat = (index: number) =>
  call(index, '/v1/egress/nova/chat/completions', { method: 'POST', body: '{}' })

function receipt(index: number) {
  const evidenceSha256 = proven.evidence.evidence_digest
  const one = {
    claims: CLAIMS,
    provider: 'nova',
    configuration_sha256: CONFIGURATION,
    evidence_sha256: evidenceSha256,
  }
  return call(index, '/v1/sign', { method: 'POST', body: JSON.stringify({ receipts: [one] }) })
}

describe('carriers', () => {
  it('listen each on a port of its own, for the worker alone', async () => {
    expect(new Set(carriers.ports).size).toBe(2)
    const stranger = await makeCertificatePair('worker')
    const port = carriers.ports[1] ?? 0
    await expect(
      callLink({ port, serverCertPem: server.certPem, client: stranger }, '/v1/state'),
    ).rejects.toThrow(/socket|ECONNRESET|alert/)
  })

  it.each([0, 1])('carry pinned calls and sign: number %i', async (index) => {
    const answer = await chat(index)
    expect([answer.status, answer.text, answer.headers['x-cmr-evidence-sha256']]).toEqual([
      200,
      '{"ok":true}',
      proven.evidence.evidence_digest,
    ])
    expect(signResponseSchema.parse((await receipt(index)).json()).receipts).toHaveLength(1)
  })

  it('begin their receipts with the same head, under one key', async () => {
    const [left, right] = (await Promise.all([receipt(0), receipt(1)])).map((reply) =>
      signResponseSchema.parse(reply.json()),
    )
    expect(left?.heads).toEqual(right?.heads)
    expect(left?.kid).toBe(right?.kid)
  })

  it('ask the main thread for what is kept there, with query and body', async () => {
    const reply = await call(1, '/v1/hpke?a=b', { method: 'POST', body: '{"x":1}' })
    expect([reply.status, reply.json()]).toEqual([200, { from: 'main' }])
    expect(asked).toEqual([['?a=b', { x: 1 }]])
  })

  it('pass its refusals on, and of an unexpected error no more than that', async () => {
    const long = await call(0, '/v1/hpke', { method: 'POST', body: '"longer than 16 bytes"' })
    expect([long.status, long.json()]).toEqual([
      413,
      { error: { code: 'request_too_large', message: 'the body is over 16 bytes' } },
    ])
    const broken = await call(0, '/v1/trust')
    expect([broken.status, broken.text.includes('secret')]).toEqual([500, false])
    expect(logged).toContainEqual(
      expect.objectContaining({ event: 'link_failed', path: '/v1/trust' }),
    )
    expect((await call(0, '/v1/none')).status).toBe(404)
  })

  it('report the state that was told last', async () => {
    const service = new Map([[SINGLE_ROW, { generation: 7, connectMs: 10_000 }]])
    tell({ ...whole, service, envelope: new Map([[SINGLE_ROW, { sha256: 'ee', until: 1 }]]) })
    const states = await Promise.all([call(0, '/v1/state'), call(1, '/v1/state')])
    const parsed = states.map((reply) => linkStateSchema.parse(reply.json()))
    expect(parsed.map(({ generation }) => generation)).toEqual([7, 7])
    // Clients may not rely on an envelope of that age.
    expect(parsed.map(({ envelope_sha256: sha256 }) => sha256)).toEqual([null, null])
    tell(whole)
  })

  it('refuse a provider as soon as its proof is withdrawn, and one whose evidence has expired', async () => {
    tell({ ...whole, channels: new Map() })
    expect((await chat(0)).headers['x-cmr-egress-error']).toBe('provider_unproven')
    const expired = { ...proven, evidence: { ...proven.evidence, expires_at: 1 } }
    tell({ ...whole, channels: new Map([['nova', expired]]) })
    expect((await chat(1)).headers['x-cmr-egress-error']).toBe('provider_unproven')
    tell(whole)
    expect((await chat(1)).status).toBe(200)
  })

  it('have a provider verified again that shows another key, and distrust it when it goes on', async () => {
    const withKey = (spki: string) => {
      const evidence = {
        ...proven.evidence,
        evidence_digest: spki,
        binding: { tls_spki_sha256: spki },
      }
      return { ...whole, channels: new Map([['nova', { ...proven, evidence }]]) }
    }
    tell(withKey('00'.repeat(32)))
    const stale: ChannelEvidence[] = []
    reverify = (of) => {
      stale.push(of)
      tell(whole)
    }
    expect((await chat(0)).status).toBe(200)
    expect(stale).toEqual([
      expect.objectContaining({ binding: { tls_spki_sha256: '00'.repeat(32) } }),
    ])

    tell(withKey('00'.repeat(32)))
    reverify = () => tell(withKey('11'.repeat(32)))
    expect((await chat(0)).headers['x-cmr-egress-error']).toBe('provider_unproven')
    await expect
      .poll(() => distrusted, { timeout: PATIENCE })
      .toEqual([
        ['nova', expect.objectContaining({ binding: { tls_spki_sha256: '11'.repeat(32) } })],
      ])
    tell(whole)
  })

  it('know a written stream where it was opened, and nowhere else', async () => {
    const stream = '2f1c6a3e-8f5b-4c1e-9c55-0d9f1b2a3c4d'
    const spec = printStreamSpec({
      stream,
      owner: 'cus_1',
      head: { id: 'x', created: 1, model: 'm' },
      format: { door: 'chat' },
      billing: { prompt_estimate: 7, max_prompt_tokens: 1_000, max_completion_tokens: 1_000 },
      include_reasoning: false,
      idle_ms: 60_000,
      keep_alive_ms: 60_000,
      record_ms: 60_000,
    })
    const body = call(0, '/v1/egress/nova/stream', {
      method: 'POST',
      body: '{}',
      headers: { 'x-cmr-chunks': spec },
    })
    const end = (index: number) => call(index, `/v1/streams/${stream}`, { method: 'DELETE' })
    await expect.poll(async () => (await end(0)).status, { timeout: PATIENCE }).toBe(200)
    expect((await end(1)).status).toBe(404)
    await body
  })
})

type Status = number | 'unreachable'

describe('a carrier that dies under load', () => {
  it(
    'leaves the others serving, is reported, and serves again on its port with the facts of then',
    async () => {
      const ports = [...carriers.ports]
      const other: Status[] = []
      const own: Status[] = []
      const over = new AbortController()
      const load = async (index: number, into: Status[]) => {
        while (!over.signal.aborted) {
          // One after another.
          const status = await chat(index).then(
            (reply) => reply.status,
            () => 'unreachable' as const,
          )
          into.push(status)
        }
      }
      const loads = [load(0, own), load(1, other)]
      await expect
        .poll(() => Math.min(own.length, other.length), { timeout: PATIENCE })
        .toBeGreaterThan(5)
      carriers.end(ports[0] ?? 0)
      tell({ ...whole, service: new Map([[SINGLE_ROW, { generation: 8, connectMs: 10_000 }]]) })
      await expect
        .poll(() => said, { timeout: PATIENCE })
        .toEqual([
          { type: 'carrier_lost', reason: 'number 1 ended' },
          { type: 'carrier_restored', reason: 'number 1' },
        ])
      expect(lost).toEqual(['ended'])
      const served = own.filter((status) => status === 200).length
      await expect
        .poll(() => own.filter((status) => status === 200).length, { timeout: PATIENCE })
        .toBeGreaterThan(served)
      over.abort()
      await Promise.all(loads)
      expect(new Set(other)).toEqual(new Set([200]))
      expect(new Set(own)).toEqual(new Set([200, 'unreachable']))
      expect(carriers.ports).toEqual(ports)
      expect(linkStateSchema.parse((await call(0, '/v1/state')).json()).generation).toBe(8)
      tell(whole)
    },
    3 * PATIENCE,
  )
})
