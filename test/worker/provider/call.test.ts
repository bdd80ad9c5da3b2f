import { createServer, type Server } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Constraints } from '../../../src/protocol/constraints.ts'
import { parseStreamSpec } from '../../../src/protocol/stream-record.ts'
import type { WholeAnswerRecord } from '../../../src/protocol/whole-answer.ts'
import type { Link } from '../../../src/worker/link/link.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import { callProvider, type RequestedStream } from '../../../src/worker/provider/call.ts'
import { classifyResponse } from '../../../src/worker/provider/failure.ts'
import type { Provider, Route } from '../../../src/worker/provider/route.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { listen } from '../../support/listen.ts'
import { routerConfig } from '../../support/router-config.ts'
import { WHOLE_ANSWER_RECORD } from '../../support/whole-answer-spec.ts'

let server: Server | undefined
/** The headers of the last call of the daemon. */
let sent: Readonly<Record<string, unknown>> | undefined
let hasSmallAnswer: boolean | undefined

beforeEach(() => (sent = undefined))
afterEach(() => server?.close())

function route(provider: Partial<Provider>): Route {
  const [config] = routerConfig({ 'nova/glm': {} }).routes
  if (config === undefined) throw new Error('no route')
  const isCarried = provider.adapter !== 'none'
  const base = { name: 'nova', baseUrl: 'https://nova.example/v1', apiKey: undefined, isCarried }
  return {
    id: 'nova/glm',
    modelKey: 'glm',
    region: undefined,
    config,
    provider: { ...base, adapter: 'envelope', ...provider },
  }
}

const nothing = () => Promise.reject(new Error('not asked'))

function call(
  provider: Partial<Provider>,
  answer?: Response,
  constraints?: Constraints,
  whole?: WholeAnswerRecord,
  requested?: RequestedStream,
) {
  const link: Link = {
    state: nothing,
    stateReadAfter: nothing,
    freshState: nothing,
    config: nothing,
    sign: nothing,
    includedReceipt: () => ({
      knownHead: undefined,
      take: () => {
        throw new Error('not asked')
      },
    }),
    attestation: nothing,
    trustBundle: nothing,
    unseal: nothing,
    hpkeKeyConfig: nothing,
    decapsulate: nothing,
    providers: nothing,
    recentProofs: nothing,
    evidence: nothing,
    egress: async (_provider, _path, init) => {
      sent = Object.fromEntries(new Headers(init.headers))
      ;({ hasSmallAnswer } = init)
      return { response: answer ?? (await nothing()), whole }
    },
    endStream: nothing,
    streamRecord: nothing,
    watchThread: () => ({ thread: undefined, loss: nothing }),
  }
  return callProvider({
    route: route(provider),
    path: '/chat/completions',
    body: new Uint8Array(),
    contentType: 'application/json',
    accept: 'application/json',
    clock: new AttemptClock(new Budget(Date.now), Date.now),
    link,
    now: Date.now,
    connectMs: 1000,
    probeConnect: async () => {},
    constraints,
    requestedStream: requested,
    classify: classifyResponse,
  })
}

const refused = (code: string) =>
  new Response('{}', { status: 503, headers: { 'x-cmr-egress-error': code } })

describe('a call through the daemon', () => {
  it.each([
    ['provider_unproven', { kind: 'attestation_failed' }],
    ['provider_unreachable', { kind: 'unavailable', unanswered: true }],
    ['constraints_unmet', { kind: 'attestation_not_accepted' }],
    ['connect_timeout', { kind: 'timeout', unanswered: true }],
    ['exhausted', { kind: 'unavailable', unanswered: true, isOwn: true }],
    ['not_found', { kind: 'unavailable', unanswered: true, isOwn: true }],
    ['invalid_request', { kind: 'unavailable', unanswered: true, isOwn: true }],
    ['anything else', { kind: 'unavailable' }],
  ])('that the daemon refuses with %s means so', async (code, failure) => {
    await expect(call({}, refused(code))).rejects.toMatchObject({
      name: 'AttemptFailure',
      message: `attempt failed: ${failure.kind}`,
      failure,
    })
  })

  it('names the evidence of its connection', async () => {
    const headers = { 'x-cmr-evidence-sha256': 'ab'.repeat(32) }
    const reply = await call({}, new Response('{}', { headers }))
    expect(reply.evidenceSha256).toBe('ab'.repeat(32))
  })
})

describe('a stream specification', () => {
  const to = { connection: STREAM_SPEC.stream, stream: 3 }
  const parsed = () => parseStreamSpec(String(sent?.['x-cmr-chunks']))
  const chunksIn = (headers: Record<string, string>, requested?: RequestedStream) =>
    call({}, new Response('{}', { headers }), undefined, undefined, requested)

  it('names the address to which they are to be sent, so that the answer is small', async () => {
    await chunksIn({}, { spec: STREAM_SPEC, to })
    expect([parsed(), hasSmallAnswer]).toEqual([{ ...STREAM_SPEC, to }, true])
  })

  it('names none where they are to come in the answer', async () => {
    await chunksIn({}, { spec: STREAM_SPEC, to: undefined })
    expect([parsed(), hasSmallAnswer]).toEqual([STREAM_SPEC, false])
  })

  it('is none where none is given', async () => {
    await chunksIn({})
    expect([sent?.['x-cmr-chunks'], hasSmallAnswer]).toEqual([undefined, false])
  })

  it.each([
    ['sent', { 'x-cmr-chunks': 'sent' }],
    ['written', { 'x-cmr-chunks': 'written' }],
    [undefined, {}],
  ])('is answered with where they are (%s)', async (chunks, headers) => {
    const reply = await chunksIn(headers, { spec: STREAM_SPEC, to })
    expect(reply.chunks).toBe(chunks)
  })
})

describe('an answer that the daemon has written whole', () => {
  it('comes with its record', async () => {
    const written = await call({}, new Response('{}'), undefined, WHOLE_ANSWER_RECORD)
    expect(written.whole).toEqual(WHOLE_ANSWER_RECORD)
    expect((await call({}, new Response('{}'))).whole).toBeUndefined()
  })

  it('is none where the worker has called the provider itself', async () => {
    const direct = { adapter: 'none', isCarried: false } as const
    vi.stubGlobal('fetch', async () =>
      Object.assign(new Response('{}'), { whole: WHOLE_ANSWER_RECORD }),
    )
    onTestFinished(() => void vi.unstubAllGlobals())
    expect((await call(direct)).whole).toBeUndefined()
  })
})

describe('a call through the daemon of a provider without attestation', () => {
  const unattested = { adapter: 'none', isCarried: true, apiKey: 'k1' } as const

  it('names the address that is meant, and has no evidence', async () => {
    const reply = await call(unattested, new Response('{}'))
    expect(reply.evidenceSha256).toBeNull()
    expect(sent).toMatchObject({
      'x-cmr-unattested': 'https://nova.example/v1',
      authorization: 'Bearer k1',
    })
    await call({}, new Response('{}'))
    expect(sent).not.toHaveProperty('x-cmr-unattested')
  })

  it('is not made where evidence is required', async () => {
    await expect(call(unattested, new Response('{}'), { min: 'simulated' })).rejects.toMatchObject({
      name: 'AttemptFailure',
      message: 'attempt failed: attestation_not_accepted',
    })
    expect(sent).toBeUndefined()
  })
})

describe('the declared length of an answer', () => {
  it.each([
    ['5', {}, 5],
    ['5, 5', {}, undefined],
    ['5', { 'transfer-encoding': 'chunked' }, undefined],
    ['5', { 'content-encoding': 'gzip' }, undefined],
  ])('%s with %o is %s', async (length, more, declared) => {
    const headers = { 'content-length': length, ...more }
    expect((await call({}, new Response('01234', { headers }))).declaredBytes).toBe(declared)
  })
})

describe('a direct call', () => {
  it('is not made where evidence is required, because none is verified', async () => {
    let asked = 0
    server = createServer((_request, response) => response.end(String(++asked)))
    const baseUrl = `http://127.0.0.1:${await listen(server)}`
    for (const constraints of [
      { min: 'simulated' as const },
      { evidence_sha256: ['ab'.repeat(32)] },
      { providers: ['vega'] },
    ]) {
      await expect(
        call({ adapter: 'none', baseUrl }, undefined, constraints),
      ).rejects.toMatchObject({
        name: 'AttemptFailure',
        message: 'attempt failed: attestation_not_accepted',
      })
    }
    expect(asked).toBe(0)
    const providers = { min: 'none' as const, providers: ['nova'] }
    const reply = await call({ adapter: 'none', baseUrl }, undefined, providers)
    await reply.response.body?.cancel()
    expect(asked).toBe(1)
  })

  it('takes nothing from the provider that only the daemon may say', async () => {
    server = createServer((_request, response) => {
      response.writeHead(200, {
        'x-cmr-evidence-sha256': 'ab'.repeat(32),
        'x-cmr-egress-error': 'provider_unproven',
        'x-cmr-chunks': 'sent',
      })
      response.end('{}')
    })
    const baseUrl = `http://127.0.0.1:${await listen(server)}`
    const reply = await call({ adapter: 'none', baseUrl })
    expect([reply.evidenceSha256, reply.chunks]).toEqual([null, undefined])
    await reply.response.body?.cancel()
  })
})
