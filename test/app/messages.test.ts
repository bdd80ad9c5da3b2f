import { createHash } from 'node:crypto'
import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic, { APIError } from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { ChatAnthropic } from '@langchain/anthropic'
import { HumanMessage } from '@langchain/core/messages'
import { generateText, stepCountIs, streamText, tool } from 'ai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { localConfig } from '../support/local-config.ts'
import { newCustomer, routerOf } from '../support/customer.ts'
import { gather } from '../support/gather.ts'
import { frame, streamOf } from '../support/provider-frames.ts'
import { claimsOf } from '../support/receipt-claims.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** `/v1/messages` with the libraries that call it, on a running stack. */

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack({ config: withUnpricedRoute() })
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

/** The local configuration with a route that has no price, which is the router's own 503. */
function withUnpricedRoute() {
  const local = localConfig()
  const [{ pricing: _, ...route }] = local.routes
  return { ...local, routes: [...local.routes, { ...route, model_key: 'unpriced' }] }
}

const client = () =>
  new Anthropic({ baseURL: stack.local.base_url, apiKey: stack.local.api_key, maxRetries: 0 })

function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(stack.local.base_url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': stack.local.api_key,
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: JSON.stringify(body),
  })
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex')
const hello = [{ role: 'user' as const, content: 'Hello!' }]
const ask = { model: 'glm-5', max_tokens: 1000, messages: hello }

const WEATHER: Anthropic.Tool = {
  name: 'weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe('the @anthropic-ai/sdk package', () => {
  test('creates a message, without thinking unless it is asked for', async () => {
    const answer = await client().messages.create(ask)
    expect(answer.content).toMatchObject([{ type: 'text' }])
    expect(answer.content[0]).toHaveProperty('text', expect.stringContaining('You said: Hello!'))
    expect(answer).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'end_turn' })
    expect(answer.usage.input_tokens).toBeGreaterThan(0)
    expect(answer).toHaveProperty('service.routed_model', 'standin/glm-5')
    expect(await standin.forwarded()).toMatchObject({
      chat_template_kwargs: { enable_thinking: false },
    })
  })

  test('thinks, and takes its thinking back', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 4000 }
    const first = await client().messages.create({ ...ask, thinking })
    expect(first.content.map(({ type }) => type)).toEqual(['thinking', 'text'])
    const messages = [...hello, { role: 'assistant' as const, content: first.content }, ...hello]
    const second = await client()
      .messages.stream({ ...ask, thinking: { type: 'adaptive' }, messages })
      .finalMessage()
    expect(second.content.map(({ type }) => type)).toEqual(['thinking', 'text'])
    const [, exchange] = await standin.exchanges()
    const sent = Buffer.from(exchange?.request.base64 ?? '', 'base64').toString()
    expect(sent).toContain('"reasoning_content":"A stand-in does not think')
  })

  test('streams a message', async () => {
    const messages = [{ role: 'user' as const, content: 'Please count to 50' }]
    const stream = client().messages.stream({ ...ask, messages })
    const events = await gather(stream)
    const final = await stream.finalMessage()
    expect(final.content).toMatchObject([{ text: expect.stringMatching(/^1 2 3 .* 49 50$/) }])
    expect(events[0]).toMatchObject({
      type: 'message_start',
      message: { usage: { input_tokens: expect.any(Number) } },
    })
    expect(events.at(-1)).toHaveProperty('service.receipt_id')
    expect(final.usage.output_tokens).toBeGreaterThan(0)
  })

  test.each([false, true])('runs a tool loop (stream: %s)', async (streamed) => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather in Berlin?' }]
    const request = { ...ask, messages, tools: [WEATHER] }
    const first = streamed
      ? await client().messages.stream(request).finalMessage()
      : await client().messages.create(request)
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.find((block) => block.type === 'tool_use')
    expect(call).toMatchObject({ name: 'weather', input: { city: 'Berlin' } })
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'sunny' }
    messages.push({ role: 'assistant', content: first.content })
    messages.push({ role: 'user', content: [result] })
    const final = await client().messages.create(request)
    expect(final.content).toMatchObject([{ text: 'The tool answered: sunny' }])
  })

  test('its tool runner falls back from threads, which are not kept here', async () => {
    const run = async ({ city }: { city: string }) => `sunny in ${city}`
    const inputSchema = z.object({ city: z.string() })
    const weather = betaZodTool({ name: 'weather', description: 'w', inputSchema, run })
    const final = await client().beta.messages.toolRunner({ ...ask, tools: [weather] })
    expect(final.content).toMatchObject([{ text: 'The tool answered: sunny in Berlin' }])
    const refused = await post('/v1/messages?beta=true', { ...ask, thread: { id: 't' } })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
      },
    })
  })

  test('counts tokens', async () => {
    const short = await client().messages.countTokens({ model: 'glm-5', messages: hello })
    const system = 'A long system prompt. '.repeat(100)
    const long = await client().messages.countTokens({ model: 'glm-5', messages: hello, system })
    expect(long.input_tokens).toBeGreaterThan(short.input_tokens + 400)
    expect(await standin.exchanges()).toEqual([])
    const unknown = client().messages.countTokens({ model: 'nobody', messages: hello })
    await expect(unknown).rejects.toThrow('404')
  })
})

test('@ai-sdk/anthropic generates, streams and runs tools', async () => {
  const baseURL = `${stack.local.base_url}/v1`
  const model = createAnthropic({ baseURL, apiKey: stack.local.api_key })('glm-5')
  const text = await generateText({ model, prompt: 'Hello!' })
  expect(text.text).toContain('You said: Hello!')
  const stream = streamText({ model, prompt: 'Please count to 50' })
  expect((await gather(stream.textStream)).join('')).toMatch(/^1 2 3 .* 49 50$/)
  const weather = tool({
    description: 'The weather in a city',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  })
  const prompt = 'What is the weather in Berlin?'
  const looped = await generateText({
    model,
    prompt,
    tools: { weather },
    stopWhen: stepCountIs(3),
  })
  expect(looped.text).toContain('sunny in Berlin')
})

test('@langchain/anthropic invokes and streams', async () => {
  const model = new ChatAnthropic({
    model: 'glm-5',
    apiKey: stack.local.api_key,
    anthropicApiUrl: stack.local.base_url,
    maxRetries: 0,
  })
  const answer = await model.invoke([new HumanMessage('Hello!')])
  expect(answer.text).toContain('You said: Hello!')
  const chunks = await gather(await model.stream([new HumanMessage('Please count to 50')]))
  expect(chunks.map((chunk) => chunk.text).join('')).toMatch(/^1 2 3 .* 49 50$/)
})

describe('the receipt of a message', () => {
  test.each([false, true])('is over the bytes of this API format (stream: %s)', async (stream) => {
    const body = { ...ask, stream }
    const answer = await post('/v1/messages', body)
    const text = await answer.text()
    const id = answer.headers.get('x-receipt-id') ?? ''
    const delivered = stream ? text.slice(0, text.indexOf('event: message_stop')) : text
    expect(await claimsOf(stack, id)).toMatchObject({
      jti: id,
      endpoint: '/v1/messages',
      client_request_digest: digest(JSON.stringify(body)),
      client_response_digest: digest(delivered),
    })
    expect(text).toContain(`"receipt_id":"${id}"`)
  })
})

describe('what goes to the provider', () => {
  test('has neither the billing header nor ids of users and devices', async () => {
    const answer = await post('/v1/messages', {
      ...ask,
      metadata: { user_id: 'device-1' },
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1; cch=abc12;' },
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
      ],
      context_management: { edits: [] },
    })
    expect(answer.headers.get('x-service-dropped-members')).toBe('metadata, context_management')
    const sent = await standin.forwarded()
    expect(sent['messages']).toEqual([{ role: 'system', content: 'Be brief.' }, ...hello])
    expect(JSON.stringify(sent)).not.toMatch(/device-1|billing|cache_control/)
  })
})

describe('errors have the form of this format', () => {
  test.each<[string, number, string, () => Promise<Response>]>([
    [
      'without a key',
      401,
      'authentication_error',
      () => post('/v1/messages', ask, { 'x-api-key': '' }),
    ],
    [
      'with an unknown key',
      401,
      'authentication_error',
      () => post('/v1/messages/count_tokens', ask, { 'x-api-key': 'sk-ant-x' }),
    ],
    ['of an unknown path', 404, 'not_found_error', () => post('/v1/messages/batches', {})],
    [
      'of an unknown model',
      404,
      'not_found_error',
      () => post('/v1/messages', { ...ask, model: 'nobody' }),
    ],
    [
      'of another method',
      405,
      'invalid_request_error',
      () => fetch(`${stack.local.base_url}/v1/messages`),
    ],
    [
      'of a body that is too large',
      413,
      'request_too_large',
      () => post('/v1/messages', { ...ask, system: 'x'.repeat(11 * 1024 * 1024) }),
    ],
    [
      'of a bad member',
      400,
      'invalid_request_error',
      () => post('/v1/messages', { ...ask, stop_sequences: 5 }),
    ],
  ])('%s: %i %s', async (_, status, type, request) => {
    const answer = await request()
    expect(answer.status).toBe(status)
    expect(await answer.json()).toEqual({
      type: 'error',
      error: { type, message: expect.any(String) },
    })
  })

  test('without money: 402, of both paths', async () => {
    const { key } = await newCustomer(routerOf(stack))
    const answer = await post('/v1/messages', ask, { 'x-api-key': key })
    expect(answer.status).toBe(402)
    expect(await answer.json()).toEqual({
      type: 'error',
      error: { type: 'billing_error', message: expect.stringMatching(/balance/) },
    })
    const sdk = new Anthropic({ baseURL: stack.local.base_url, apiKey: key, maxRetries: 0 })
    const failure: unknown = await sdk.messages.create(ask).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(APIError)
    expect(failure).toMatchObject({ status: 402, type: 'billing_error' })
    expect(await standin.exchanges()).toEqual([])
  })

  test("beyond the key's own limit: 429 with Retry-After, where the SDK looks for it", async () => {
    const customer = await newCustomer(routerOf(stack), { billing: 'postpaid' })
    const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
    const limits = { name: 'narrow', requests_per_minute: 1 }
    const made = await admin.call('POST', `/admin/customers/${customer.id}/keys`, limits)
    const { key } = z.object({ key: z.string() }).parse(made)
    expect((await post('/v1/messages', ask, { 'x-api-key': key })).status).toBe(200)
    const answer = await post('/v1/messages', ask, { 'x-api-key': key })
    expect(answer.status).toBe(429)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await answer.json()).toEqual({
      type: 'error',
      error: { type: 'rate_limit_error', message: expect.any(String) },
    })
  })

  test("when the router itself cannot answer: 503, which another try won't mend", async () => {
    const answer = await post('/v1/messages', { ...ask, model: 'unpriced' })
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([503, 'false'])
    expect(await answer.json()).toEqual({
      type: 'error',
      error: { type: 'overloaded_error', message: expect.any(String) },
    })
  })

  test('and answers have the id of the request where the library looks for it', async () => {
    const { response, request_id } = await client().messages.create(ask).withResponse()
    expect(request_id).toBe(response.headers.get('x-request-id'))
    const stream = client().messages.stream(ask)
    const { request_id: streamed, response: head } = await stream.withResponse()
    await stream.done()
    expect(streamed).toBe(head.headers.get('x-request-id'))
    const failure: unknown = await client()
      .messages.create({ ...ask, model: 'nobody' })
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({
      status: 404,
      requestID: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  test('when every route is down: 529', async () => {
    await standin.script({ times: 9, status: 503, frames: ['{}'] })
    const answer = await post('/v1/messages', ask)
    expect(answer.status).toBe(529)
    expect(await answer.json()).toMatchObject({ error: { type: 'overloaded_error' } })
  })

  test('when the routes are rate limited: 429 with Retry-After', async () => {
    const headers = { 'retry-after': '7' }
    await standin.script({ times: 9, status: 429, headers, frames: ['{}'] })
    const answer = await post('/v1/messages', ask)
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
    expect(await answer.json()).toMatchObject({ error: { type: 'rate_limit_error' } })
  })

  test('in a stream that broke', async () => {
    const frames = [frame({ content: 'half' })]
    await standin.script({ frames, frame_delay_ms: 200, end: 'reset' })
    const stream = client().messages.stream({ ...ask, model: 'mistral-small' })
    const failure: unknown = await stream.finalMessage().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(APIError)
    expect(String(failure)).toContain('The provider broke off its answer.')
    expect(failure).toMatchObject({ type: 'incomplete_response_error' })
  })

  test('of a prompt that is too long, in the words that clients look for', async () => {
    const error = { error: { code: 'context_length_exceeded', message: 'x' } }
    await standin.script({ times: 9, status: 400, frames: [JSON.stringify(error)] })
    const answer = await post('/v1/messages', ask)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      error: { message: expect.stringMatching(/^prompt is too long/) },
    })
  })
})

test('a stop at the length is max_tokens, and cached tokens are reported separately from the input', async () => {
  await standin.script({ frames: streamOf([{ content: 'half' }], 'length') })
  const message = await client()
    .messages.stream({ ...ask, model: 'mistral-small' })
    .finalMessage()
  expect(message).toMatchObject({
    stop_reason: 'max_tokens',
    usage: { input_tokens: 15, cache_read_input_tokens: 5, output_tokens: 8 },
  })
})
