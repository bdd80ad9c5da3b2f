import { createHash } from 'node:crypto'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { localConfig } from '../support/local-config.ts'
import { claimsOf } from '../support/receipt-claims.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** `/v1/embeddings`, and the headers that stand for members of a body, on a running stack. */

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack({ config: withNarrowRoute() })
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

/** The local configuration with a route that takes `dimensions`, and three inputs at once. */
function withNarrowRoute() {
  const local = localConfig()
  const route = local.routes.find(({ type }: { type: string }) => type === 'embedding')
  const embedding = { dimensions: true, max_inputs: 3 }
  return { ...local, routes: [...local.routes, { ...route, model_key: 'narrow', embedding }] }
}

const client = () => {
  const baseURL = `${stack.local.base_url}/v1`
  return new OpenAI({ baseURL, apiKey: stack.local.api_key, maxRetries: 0 })
}

function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return stack.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

/** Has the provider answer with these vectors. */
function scriptVectors(vectors: readonly unknown[], usage?: object): Promise<void> {
  const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  return standin.script({
    headers: { 'content-type': 'application/json' },
    frames: [JSON.stringify({ object: 'list', data, model: 'BAAI/bge-m3', usage })],
  })
}

const USAGE = { prompt_tokens: 7, total_tokens: 7 }

describe('the openai package', () => {
  test('decodes base64, which it asks for by itself, whatever the provider sends', async () => {
    await scriptVectors(
      [
        [0.5, -1, 0.25],
        [1, 2, 3],
      ],
      USAGE,
    )
    const answer = await client().embeddings.create({ model: 'bge-m3', input: ['a', 'b'] })
    expect(answer.data.map(({ embedding }) => embedding)).toEqual([
      [0.5, -1, 0.25],
      [1, 2, 3],
    ])
    expect(answer).toMatchObject({ model: 'standin/bge-m3', usage: USAGE })
    expect(answer).toHaveProperty('service.receipt_id')
  })

  test('gets numbers as the provider wrote them, also for token ids', async () => {
    await scriptVectors([[0.1, 0.30000000000000004]], USAGE)
    const ask = { model: 'bge-m3', input: [1, 2, 3], encoding_format: 'float' as const }
    const answer = await client().embeddings.create(ask)
    expect(answer.data[0]?.embedding).toEqual([0.1, 0.30000000000000004])
    const [exchange] = await standin.exchanges()
    const sent = Buffer.from(exchange?.request.base64 ?? '', 'base64').toString()
    expect(JSON.parse(sent)).toEqual({ ...ask, model: 'BAAI/bge-m3' })
  })
})

describe('a route with an `embedding` of its own', () => {
  const NARROW = 'standin/narrow'

  test('is sent `dimensions`, and its vectors have that length', async () => {
    await scriptVectors([[1, 2]], USAGE)
    const ask = { model: 'narrow', input: 'a', dimensions: 2 }
    const answer = await client().embeddings.create(ask)
    expect(answer.data[0]?.embedding).toEqual([1, 2])
    expect(answer.model).toBe(NARROW)
    expect(await standin.forwarded()).toMatchObject({ input: 'a', dimensions: 2 })
  })

  test('that answers with vectors of another length has not answered', async () => {
    await scriptVectors([[1, 2, 3]], USAGE)
    const answer = await post('/v1/embeddings', { model: 'narrow', input: 'a', dimensions: 2 })
    expect(answer.status).toBe(502)
    expect(await answer.json()).toMatchObject({ error: { code: 'bad_gateway' } })
  })

  test('takes as many inputs as its `max_inputs`, and no more', async () => {
    await scriptVectors([[1], [2], [3]], USAGE)
    const most = { model: 'narrow', input: ['a', 'b', 'c'] }
    const answer = await client().embeddings.create(most)
    expect(answer.data.map(({ embedding }) => embedding)).toEqual([[1], [2], [3]])
    expect(await standin.forwarded()).toMatchObject({ input: most.input })
    await standin.reset()
    const refused = await post('/v1/embeddings', { ...most, input: ['a', 'b', 'c', 'd'] })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { code: 'invalid_request_error', param: 'input' },
    })
    expect(await standin.exchanges()).toEqual([])
  })

  test('is passed over for another of the caller where the batch is too large for it', async () => {
    await scriptVectors([[1], [2], [3], [4]], USAGE)
    const input = ['a', 'b', 'c', 'd']
    const answer = await post('/v1/embeddings', { model: 'narrow', failover: ['bge-m3'], input })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({
      service: { requested_route: 'narrow', routed_model: 'standin/bge-m3', failover: true },
    })
  })
})

test('the receipt is over the bytes of this endpoint, and the row counts what was embedded', async () => {
  await scriptVectors([[1]], USAGE)
  const body = { model: 'bge-m3', input: 'Hello!' }
  const answer = await post('/v1/embeddings', body)
  const text = await answer.text()
  const id = answer.headers.get('x-receipt-id') ?? ''
  const [exchange] = await standin.exchanges()
  expect(await claimsOf(stack, id)).toMatchObject({
    endpoint: '/v1/embeddings',
    prompt_tokens: 7,
    completion_tokens: 0,
    client_request_digest: digest(JSON.stringify(body)),
    client_response_digest: digest(text),
    request_digest: exchange?.request.sha256,
    response_digest: exchange?.response.sha256,
  })
  const usage = await (await stack.fetch('/v1/usage?limit=1')).json()
  expect(usage.data[0]).toMatchObject({
    modality: 'embedding',
    model: 'standin/bge-m3',
    prompt_tokens: 7,
    completion_tokens: 0,
    receipt_id: id,
  })
  expect(usage.data[0].cost_eur).toBeCloseTo((7 * 0.02) / 1e6, 12)
})

test.each([
  ['a total alone', { total_tokens: 7 }],
  ['a total beside no input', { prompt_tokens: 0, total_tokens: 7 }],
])('tokens that the provider counts in %s are billed as input', async (_, usage) => {
  await scriptVectors([[1]], usage)
  const answer = await post('/v1/embeddings', { model: 'bge-m3', input: 'Hello!' })
  expect(await answer.json()).toMatchObject({ usage: USAGE })
  const { data } = await (await stack.fetch('/v1/usage?limit=1')).json()
  expect(data[0]).toMatchObject({ modality: 'embedding', prompt_tokens: 7, completion_tokens: 0 })
})

describe('refused', () => {
  test.each<[number, string, string | null, object]>([
    [400, 'missing_field', 'input', { model: 'bge-m3' }],
    [400, 'invalid_request_error', 'input', { model: 'bge-m3', input: [] }],
    [400, 'invalid_request_error', 'input', { model: 'bge-m3', input: ['a', ''] }],
    [400, 'invalid_request_error', 'input', { model: 'bge-m3', input: ['a', 1] }],
    [400, 'invalid_request_error', 'input', { model: 'bge-m3', input: Array(2049).fill('a') }],
    [
      400,
      'invalid_request_error',
      'encoding_format',
      { model: 'bge-m3', input: 'a', encoding_format: 'int8' },
    ],
    [400, 'invalid_request_error', 'dimensions', { model: 'bge-m3', input: 'a', dimensions: 2 }],
    [400, 'invalid_request_error', 'model', { model: 'glm-5', input: 'a' }],
    [404, 'model_not_found', 'model', { model: 'nobody', input: 'a' }],
  ])('%i %s of %s, case %#', async (status, code, param, body) => {
    const answer = await post('/v1/embeddings', body)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ error: { code, param } })
  })

  test('an input that is too long for the model, under the name that it has here', async () => {
    const error = { error: { code: 'context_length_exceeded', message: 'x' } }
    await standin.script({ status: 400, frames: [JSON.stringify(error)] })
    const answer = await post('/v1/embeddings', { model: 'bge-m3', input: 'a' })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual({
      error: {
        message: 'This request is longer than the context window of the model.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        param: 'input',
      },
    })
  })

  test.each([
    ['too few vectors', []],
    ['vectors of two lengths', [[1], [1, 2]]],
    ['a vector of words', [['a'], ['b']]],
    ['base64 that is no float32', ['AAAA', 'AAAA']],
  ])('an answer of the provider with %s', async (_, vectors) => {
    await scriptVectors(vectors)
    const answer = await post('/v1/embeddings', { model: 'bge-m3', input: ['a', 'b'] })
    expect(answer.status).toBe(502)
    expect(await answer.json()).toMatchObject({ error: { code: 'bad_gateway' } })
  })
})

describe('X-Service-Failover and X-Service-Reasoning', () => {
  const ENDPOINTS: readonly [string, object][] = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
    ['/v1/responses', { input: 'hi' }],
    ['/v1/messages', { messages: [{ role: 'user', content: 'hi' }], max_tokens: 100 }],
  ]

  test.each(ENDPOINTS)('stand for the members of a body on %s', async (path, body) => {
    await standin.script({ provider: 'standin', times: 2, status: 503, frames: ['{}'] })
    const headers = {
      'x-service-failover': 'standin-two/gpt-oss-120b, mistral-small',
      'x-service-reasoning': 'high',
    }
    const answer = await post(path, { model: 'standin/gpt-oss-120b', ...body }, headers)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({
      service: { routed_model: 'eu/standin-two/gpt-oss-120b', failover: true },
    })
    const sent = (await standin.exchanges()).map(({ request }) =>
      JSON.parse(Buffer.from(request.base64, 'base64').toString()),
    )
    expect(sent.at(-1)).toMatchObject({ reasoning_effort: 'high' })
  })

  test.each(ENDPOINTS)('must not differ from the body on %s', async (path, body) => {
    const ask = { model: 'glm-5', failover: ['mistral-small'], ...body }
    const same = await post(path, ask, { 'x-service-failover': 'mistral-small' })
    expect(same.status).toBe(200)
    const other = await post(path, ask, { 'x-service-failover': 'gpt-oss-120b' })
    expect(other.status).toBe(400)
    expect(await other.text()).toContain('say different things')
  })

  test.each<[string, object]>([
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }], reasoning: 'off' }],
    ['/v1/responses', { input: 'hi', reasoning: { effort: 'none' } }],
    [
      '/v1/messages',
      { messages: [{ role: 'user', content: 'hi' }], thinking: { type: 'disabled' } },
    ],
  ])('a reasoning of the body that differs is refused on %s', async (path, body) => {
    const ask = { model: 'glm-5', ...body }
    expect((await post(path, ask, { 'x-service-reasoning': 'none' })).status).toBe(200)
    expect((await post(path, ask, { 'x-service-reasoning': 'high' })).status).toBe(400)
  })

  test.each([
    ['x-service-failover', 'a b'],
    ['x-service-failover', ''],
    ['x-service-failover', 'a,b,c,d,e,f'],
    ['x-service-reasoning', 'hard'],
  ])('%s: "%s" is malformed', async (name, value) => {
    const answer = await post('/v1/responses', { model: 'glm-5', input: 'hi' }, { [name]: value })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { code: 'invalid_parameter' } })
  })

  test('on embeddings failover works, and reasoning is named as dropped', async () => {
    await scriptVectors([[1]])
    const headers = { 'x-service-reasoning': 'high', 'x-service-failover': 'eu/bge-m3' }
    const answer = await post('/v1/embeddings', { model: 'bge-m3', input: 'a' }, headers)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-service-dropped-members')).toBe('X-Service-Reasoning')
  })
})

test('an answer that the router does not take is billed, by the estimate of its input', async () => {
  const frames = [`{"data": [${'{},'.repeat(2 * 1024 * 1024)}{}]}`]
  await standin.script({ headers: { 'content-type': 'application/json' }, frames })
  const answer = await post('/v1/embeddings', { model: 'bge-m3', input: 'a'.repeat(30) })
  expect(answer.status).toBe(422)
  const { data } = await (await stack.fetch('/v1/usage?limit=1')).json()
  const id = answer.headers.get('x-request-id')
  expect(data[0]).toMatchObject({ id, receipt_id: null, prompt_tokens: 10, completion_tokens: 0 })
})
