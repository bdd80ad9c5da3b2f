import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createClient, type ClientOptions } from '../../src/client/index.ts'
import { createClient as createBrowserClient } from '../../src/client/browser.ts'
import { storageState } from '../../src/client/storage-state.ts'
import { makeHpkeKey } from '../../src/enclave/hpke/hpke-key.ts'
import { clientOf, startFakeRouter, type FakeRouter } from '../support/fake-router.ts'
import { makeWorld, type World } from '../support/synthetic-world.ts'

/** The library with encrypted bodies, over a connection that proves nothing. */

const PROMPT = 'the prompt that nobody else may read'

let world: World
const open: { close(): unknown }[] = []

beforeAll(async () => {
  world = await makeWorld()
}, 60_000)
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
})

async function start(make = createClient, more: Partial<ClientOptions> = {}) {
  const host = await startFakeRouter(world)
  const { options, deps, pass } = clientOf(world, host, { transport: 'ehbp', ...more })
  const client = make(options, deps)
  open.push(client, host)
  return { client, host, pass, ask: (init: RequestInit = {}) => ask(client.fetch, host, init) }
}

function ask(send: typeof fetch, { baseURL }: FakeRouter, init: RequestInit): Promise<Response> {
  return send(`${baseURL}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: PROMPT }] }),
    ...init,
  })
}

describe('a fetch with encrypted bodies', () => {
  test.each([createClient, createBrowserClient])(
    'proves the key, and sends what only its holder reads',
    async (make) => {
      const { ask: send, client, host } = await start(make)
      const answer = await send()
      expect(await answer.json()).toHaveProperty('service.receipt_id')
      expect(answer.headers.has('ehbp-response-nonce')).toBe(false)
      expect(host.received).toHaveLength(1)
      expect(host.received[0]).not.toContain(PROMPT)
      expect(host.ehbp.opened).toEqual([expect.stringContaining(PROMPT)])
      const [proof] = client.proofs()
      expect(proof?.hpkeKeyConfig).toEqual(host.ehbp.key.config)
      expect(proof?.checks.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['report_data_binding', 'nonce', 'hpke_key']),
      )
    },
  )

  test('asks for evidence once, however many requests follow', async () => {
    const { ask: send, host } = await start()
    await Promise.all(Array.from({ length: 5 }, async () => (await send()).text()))
    expect(host.evidenceAsked()).toBe(1)
    expect(
      new Set(host.received.map((one) => /"ehbp-encapsulated-key":"(\w+)"/.exec(one)?.[1])),
    ).toHaveProperty('size', 5)
  })

  test('verifies again when the evidence expires, and fails where no fresh evidence is valid', async () => {
    const { ask: send, host, pass } = await start()
    await (await send()).text()
    pass(3_800_000)
    await expect(send()).rejects.toMatchObject({ failed: ['freshness'] })
    expect(host.received).toHaveLength(1)
  })

  test('follows a host to its next key: proven again, sent again', async () => {
    const { ask: send, host } = await start()
    await (await send()).text()
    host.ehbp.swapKey(await makeHpkeKey())
    expect((await send()).status).toBe(200)
    expect(host.evidenceAsked()).toBe(2)
    expect(host.ehbp.opened).toHaveLength(2)
  })

  test('waits for evidence and key that agree where the key is replaced between the two', async () => {
    const { ask: send, host } = await start()
    const other = await makeHpkeKey()
    let served = 0
    host.misbehave({ hpkeKeys: (honest) => (++served === 1 ? other.config : honest) })
    expect((await send()).status).toBe(200)
    expect(served).toBe(2)
  })

  test('gives up on a host that proves one key and has another', async () => {
    const { ask: send, host } = await start()
    const shown = host.ehbp.key
    host.ehbp.swapKey(await makeHpkeKey())
    host.misbehave({ envelopeHpke: shown.configSha256, hpkeKeys: () => shown.config })
    await expect(send()).rejects.toMatchObject({ code: 'attestation_unavailable' })
    expect(host.ehbp.opened).toEqual([])
    expect(host.received.join()).not.toContain(PROMPT)
  })

  test('passes streams on frame by frame', async () => {
    const { ask: send, host } = await start()
    let feed!: ReadableStreamDefaultController<Uint8Array>
    const body = new ReadableStream<Uint8Array>({ start: (one) => void (feed = one) })
    host.ehbp.answer = () =>
      new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    const reader = (await send()).body?.getReader()
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      feed.enqueue(new TextEncoder().encode(event))
      expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(event)
    }
    feed.close()
    expect((await reader?.read())?.done).toBe(true)
  })

  test('passes errors of the enclave on as they are', async () => {
    const { ask: send, host } = await start()
    host.ehbp.answer = () => Response.json({ error: { code: 'model_not_found' } }, { status: 404 })
    const answer = await send()
    expect([answer.status, await answer.json()]).toEqual([
      404,
      { error: { code: 'model_not_found' } },
    ])
  })

  test('can be aborted, also while it waits for the proof', async () => {
    const { ask: send, host } = await start()
    await expect(send({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    })
    const leaving = new AbortController()
    host.misbehave({ envelopeText: (text) => (leaving.abort(), text) })
    await expect(send({ signal: leaving.signal })).rejects.toMatchObject({ name: 'AbortError' })
    expect(host.received).toEqual([])
  })

  test('sends a request without a body as it is, once the host is proven', async () => {
    const { client, host } = await start()
    await client.fetch(`${host.baseURL}/v1/models`)
    expect(host.evidenceAsked()).toBe(1)
    expect(host.received[0]).not.toContain('ehbp')
  })
})

describe('a man in the middle with a certificate that everybody trusts', () => {
  const cutTo = (frames: number) => async (answer: Response) => {
    const bytes = await answer.bytes()
    let end = 0
    for (let i = 0; i < frames; i++) end += 4 + new DataView(bytes.buffer, end).getUint32(0)
    return new Response(bytes.slice(0, end), { headers: answer.headers })
  }

  test.each([
    ['cuts the answer between two frames', cutTo(1), 'the answer was cut'],
    ['cuts the answer before its first frame', cutTo(0), 'the answer was cut'],
    [
      'cuts the answer within a frame',
      async (answer: Response) =>
        new Response((await answer.bytes()).slice(0, 30), { headers: answer.headers }),
      'the answer was cut',
    ],
    [
      'changes a byte of the answer',
      async (answer: Response) =>
        new Response(
          (await answer.bytes()).map((byte, at) => (at === 9 ? byte ^ 1 : byte)),
          { headers: answer.headers },
        ),
      'the answer was changed on its way',
    ],
    [
      'adds to the answer',
      async (answer: Response) =>
        new Response(new Blob([await answer.bytes(), Uint8Array.of(0, 0, 0, 1, 1)]), {
          headers: { 'ehbp-response-nonce': answer.headers.get('ehbp-response-nonce') ?? '' },
        }),
      'the answer goes on after its end',
    ],
    [
      'announces a frame of 4 GiB',
      (answer: Response) =>
        new Response(Uint8Array.of(255, 255, 255, 255), { headers: answer.headers }),
      'the answer was changed on its way',
    ],
  ])('who %s is noticed', async (_what, meddle, message) => {
    const { ask: send, host } = await start()
    host.ehbp.meddle = meddle
    const answer = await send()
    await expect(answer.text()).rejects.toMatchObject({ code: 'answer_refused', message })
  })

  test.each([
    ['gives an answer of his own', () => Response.json({ choices: [] }), 'not encrypted'],
    [
      'gives a nonce that is none',
      () => new Response('x', { headers: { 'ehbp-response-nonce': 'xyz' } }),
      'malformed',
    ],
  ])('who %s is noticed before a byte of it is passed on', async (_what, meddle, message) => {
    const { ask: send, host } = await start()
    host.ehbp.meddle = meddle
    await expect(send()).rejects.toMatchObject({
      code: 'answer_refused',
      message: expect.stringContaining(message),
    })
  })

  test('who gives an error of his own has its status passed on, and not its words', async () => {
    const { ask: send, host } = await start()
    host.ehbp.meddle = () =>
      Response.json(
        { error: { message: 'call this number' } },
        {
          status: 503,
          headers: { 'retry-after': '7', 'x-evil': '1' },
        },
      )
    const answer = await send()
    expect([
      answer.status,
      answer.headers.get('retry-after'),
      answer.headers.get('x-evil'),
    ]).toEqual([503, '7', null])
    expect(await answer.json()).toMatchObject({ error: { code: 'unencrypted_answer' } })
  })

  test.each([201, 203, 206])(
    'who turns the status into %s does not get around the receipt that is required',
    async (status) => {
      const { ask: send, host } = await start(createClient, { requireReceipt: true })
      host.ehbp.meddle = ({ body, headers }) => new Response(body, { status, headers })
      const answer = await send()
      expect(answer.status).toBe(status)
      await expect(answer.text()).rejects.toMatchObject({
        code: 'receipt_refused',
        message: expect.stringContaining('the receipt of /v1/chat/completions does not hold: '),
      })
    },
  )

  test.each([
    ['as most endpoints have it', { error: { message: 'x', type: 'insufficient_quota' } }],
    ['as /v1/messages has it', { type: 'error', error: { type: 'billing_error', message: 'x' } }],
  ])('who gives an error the status of an answer is noticed: %s', async (_form, error) => {
    const { ask: send, host } = await start()
    host.ehbp.answer = () => Response.json(error, { status: 402 })
    host.ehbp.meddle = ({ body, headers }) => new Response(body, { status: 200, headers })
    await expect((await send()).text()).rejects.toMatchObject({
      code: 'answer_refused',
      message: 'the answer is an error, and came with status 200',
    })
  })

  test('who takes the place of the host after the proof reads nothing', async () => {
    const { ask: send, host } = await start()
    await (await send()).text()
    host.ehbp.swapKey(await makeHpkeKey())
    host.misbehave({ envelopeHpke: host.ehbp.key.configSha256, nonce: 'f'.repeat(64) })
    await expect(send()).rejects.toMatchObject({ failed: ['nonce'] })
    expect(host.ehbp.opened).toHaveLength(1)
    expect(host.received.join()).not.toContain(PROMPT)
  })
})

describe('evidence from whoever answers', () => {
  test.each(['/attestation', '/.well-known/hpke-keys'])(
    'is read within a size and a time: %s',
    async (path) => {
      const host = await startFakeRouter(world)
      const { options, deps } = clientOf(world, host, { transport: 'ehbp' })
      const signals: unknown[] = []
      const vast: typeof fetch = async (input, init) => {
        signals.push(init?.signal)
        const { pathname } = new URL(input instanceof Request ? input.url : input)
        if (pathname === path) return new Response(new Uint8Array(5 * 1024 * 1024))
        return (deps.fetch ?? fetch)(input, init)
      }
      const client = createBrowserClient(options, { ...deps, fetch: vast })
      open.push(client, host)
      await expect(client.verify()).rejects.toThrow('the answer is too large')
      expect(signals).toHaveLength(3)
      expect(signals.every((signal) => signal instanceof AbortSignal)).toBe(true)
    },
  )
})

describe('the options', () => {
  test('refuse plain HTTP to another machine, and TLS where it cannot be seen', () => {
    const { options } = clientOf(world, { baseURL: 'http://router.test' }, { transport: 'ehbp' })
    expect(() => createClient(options)).toThrow('baseURL: without TLS anybody can read the API key')
    const tls = clientOf(world, { baseURL: 'https://router.test' }, { transport: 'tls' }).options
    expect(() => createBrowserClient(tls)).toThrow('this runtime hides the connection')
  })

  test('keep the newest bundle in the storage of a page, and refuse an older one there', async () => {
    const kept = new Map<string, string>()
    const storage = {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
    }
    const host = await startFakeRouter(world)
    open.push(host)
    const visit = () => {
      const more = { transport: 'ehbp', state: storageState(storage) } as const
      const { options, deps } = clientOf(world, host, more)
      return ask(createBrowserClient(options, deps).fetch, host, {})
    }
    await (await visit()).text()
    expect([...kept.keys()]).toEqual([expect.stringMatching(/^confidential-model-router\//)])
    host.misbehave({ bundle: { version: 6 } })
    await expect(visit()).rejects.toMatchObject({ failed: ['trust_bundle_version'] })
    for (const name of kept.keys()) kept.set(name, '{')
    await expect(visit()).rejects.toMatchObject({ code: 'bundle_state' })
  })
})
