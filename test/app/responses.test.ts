import { createHash } from 'node:crypto'
import { createOpenAI } from '@ai-sdk/openai'
import { Agent, OpenAIResponsesModel, Runner, tool as agentTool } from '@openai/agents'
import { generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { gather } from '../support/gather.ts'
import { frame, streamOf, toolDelta } from '../support/provider-frames.ts'
import { claimsOf } from '../support/receipt-claims.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** `/v1/responses` with the libraries that call it, on a running stack. */

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack()
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

const access = () => ({ baseURL: `${stack.local.base_url}/v1`, apiKey: stack.local.api_key })
const client = () => new OpenAI({ ...access(), maxRetries: 0 })

function post(body: object, headers: Record<string, string> = {}): Promise<Response> {
  return stack.fetch('/v1/responses', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  strict: true,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
}

describe('the openai package', () => {
  test('creates a response', async () => {
    const answer = await client().responses.create({ model: 'glm-5', input: 'Hello!' })
    expect(answer.output_text).toContain('You said: Hello!')
    expect(answer).toMatchObject({ object: 'response', status: 'completed', store: false })
    expect(answer.usage?.total_tokens).toBeGreaterThan(0)
    expect(answer).toHaveProperty('service.routed_model', 'standin/glm-5')
  })

  test('streams a response, its reasoning as a summary', async () => {
    const stream = client().responses.stream({ model: 'glm-5', input: 'Please count to 50' })
    const events = await gather(stream)
    const final = await stream.finalResponse()
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, i) => i))
    expect(final.output_text).toMatch(/^1 2 3 .* 49 50$/)
    expect(final.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
    expect(events.at(-1)).toHaveProperty('service.receipt_id')
    expect(events.filter((event) => 'service' in event)).toHaveLength(1)
  })

  test('parses an answer of a schema', async () => {
    const city = z.object({ name: z.string(), people: z.number() })
    const answer = await client().responses.parse({
      model: 'glm-5',
      input: 'A city?',
      text: { format: zodTextFormat(city, 'city') },
    })
    expect(answer.output_parsed).toMatchObject({ name: expect.any(String) })
  })

  test.each([false, true])('carries a tool call and its output (stream: %s)', async (streamed) => {
    const input: OpenAI.Responses.ResponseInputItem[] = [
      { role: 'user', content: 'What is the weather in Berlin?' },
    ]
    const ask = { model: 'glm-5', input, tools: [WEATHER] }
    const { output } = streamed
      ? await client().responses.stream(ask).finalResponse()
      : await client().responses.create(ask)
    const call = output.find((item) => item.type === 'function_call')
    expect(call).toMatchObject({ name: 'weather', arguments: '{"city":"Berlin"}' })
    if (call?.type !== 'function_call') throw new Error('no call')
    for (const item of output) if (item.type === 'reasoning') input.push(item)
    input.push(call)
    input.push({ type: 'function_call_output', call_id: call.call_id, output: 'sunny' })
    const final = await client().responses.create(ask)
    expect(final.output_text).toBe('The tool answered: sunny')
  })

  test('gets calls of custom tools and namespaces back as what they were', async () => {
    const deltas = [
      toolDelta(0, 'shell', '{"input":"ls -l"}'),
      toolDelta(1, 'files__read', '{"path":"a"}'),
    ]
    await standin.script({ frames: streamOf(deltas, 'tool_calls') })
    const tools = [
      { type: 'custom', name: 'shell' },
      { type: 'namespace', name: 'files', tools: [{ type: 'function', name: 'read' }] },
      { type: 'web_search' },
    ]
    const answer = await post({ model: 'mistral-small', input: 'go', stream: true, tools })
    const text = await answer.text()
    expect(answer.headers.get('x-service-dropped-members')).toBe('tools.web_search')
    expect(eventOf(text, 'response.custom_tool_call_input.done')).toMatchObject({ input: 'ls -l' })
    expect(eventOf(text, 'response.completed')).toMatchObject({
      response: {
        output: [
          { type: 'custom_tool_call', name: 'shell', input: 'ls -l', call_id: 'call_0' },
          { type: 'function_call', name: 'read', namespace: 'files', arguments: '{"path":"a"}' },
        ],
      },
    })
    expect(await standin.forwarded()).toMatchObject({
      tools: [{ function: { name: 'shell' } }, { function: { name: 'files__read' } }],
    })
  })
})

function eventOf(text: string, type: string): unknown {
  const data = text.split(`event: ${type}\ndata: `)[1]?.split('\n')[0]
  return data === undefined ? undefined : JSON.parse(data)
}

test('@openai/agents runs a tool loop', async () => {
  const weather = agentTool({
    name: 'weather',
    description: 'The weather in a city',
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  })
  const model = new OpenAIResponsesModel(client(), 'glm-5')
  const agent = new Agent({ name: 'a', instructions: 'Be brief.', model, tools: [weather] })
  const runner = new Runner({ tracingDisabled: true })
  const whole = await runner.run(agent, 'What is the weather in Berlin?')
  expect(whole.finalOutput).toBe('The tool answered: sunny in Berlin')
  const streamed = await runner.run(agent, 'What is the weather in Berlin?', { stream: true })
  await streamed.completed
  expect(streamed.finalOutput).toBe('The tool answered: sunny in Berlin')
})

describe('the default model of @ai-sdk/openai', () => {
  const model = (id: string) => createOpenAI(access())(id)

  test('generates and streams text with reasoning', async () => {
    const whole = await generateText({ model: model('glm-5'), prompt: 'Hello!' })
    expect(whole.text).toContain('You said: Hello!')
    expect(whole.finishReason).toBe('stop')
    const stream = streamText({ model: model('glm-5'), prompt: 'Please count to 50' })
    expect((await gather(stream.textStream)).join('')).toMatch(/^1 2 3 .* 49 50$/)
  })

  test('runs tools and takes their results back', async () => {
    const weather = tool({
      description: 'The weather in a city',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `sunny in ${city}`,
    })
    const result = await generateText({
      model: model('glm-5'),
      prompt: 'What is the weather in Berlin?',
      tools: { weather },
      stopWhen: stepCountIs(3),
    })
    expect(result.text).toContain('sunny in Berlin')
  })

  test('gets an error that explains how to have several turns: nothing is stored to refer to', async () => {
    const openai = { store: false }
    const first = await generateText({ model: model('glm-5'), prompt: 'Hello!' })
    const messages = [
      { role: 'user' as const, content: 'Hello!' },
      ...first.response.messages,
      { role: 'user' as const, content: 'And now?' },
    ]
    const referring = generateText({ model: model('glm-5'), messages, maxRetries: 0 })
    await expect(referring).rejects.toThrow('ask with "store": false')
    const providerOptions = { openai }
    const whole = await generateText({ model: model('glm-5'), messages, providerOptions })
    expect(whole.text).toContain('You said: And now?')
  })
})

describe('the receipt of a response', () => {
  test.each([false, true])('is over the bytes of this API format (stream: %s)', async (stream) => {
    const body = { model: 'glm-5', input: 'Hello!', stream }
    const answer = await post(body)
    const text = await answer.text()
    const id = answer.headers.get('x-receipt-id') ?? ''
    const claims = await claimsOf(stack, id)
    const [exchange] = await standin.exchanges()
    const delivered = stream ? text.slice(0, text.indexOf('event: response.completed')) : text
    expect(claims).toMatchObject({
      jti: id,
      endpoint: '/v1/responses',
      client_request_digest: digest(JSON.stringify(body)),
      client_response_digest: digest(delivered),
      request_digest: exchange?.request.sha256,
      response_digest: exchange?.response.sha256,
    })
    expect(text).toContain(`"receipt_id":"${id}"`)
  })

  test('is left out on request', async () => {
    const answer = await post({ model: 'glm-5', input: 'a' }, { 'x-service-receipt': 'false' })
    expect(answer.headers.has('x-receipt-id')).toBe(false)
    expect(await answer.text()).not.toContain('receipt_id')
  })
})

describe('the end of a stream', () => {
  const ask = { model: 'mistral-small', input: 'go', stream: true }

  test('that stopped at its length is incomplete', async () => {
    await standin.script({ frames: streamOf([{ content: 'half' }], 'length') })
    const event = eventOf(await (await post(ask)).text(), 'response.incomplete')
    expect(event).toMatchObject({
      response: {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ status: 'incomplete', content: [{ text: 'half' }] }],
        usage: { input_tokens: 20, input_tokens_details: { cached_tokens: 5 } },
      },
      service: { failover: false },
    })
  })

  test('that broke is a failed response, which makes clients ask once and not six times', async () => {
    await standin.script({
      frames: [frame({ content: 'half' })],
      frame_delay_ms: 200,
      end: 'reset',
    })
    const text = await (await post(ask)).text()
    expect(eventOf(text, 'response.failed')).toMatchObject({
      response: { status: 'failed', error: { code: 'server_is_overloaded' } },
    })
    expect(text).not.toContain('"service":')
    expect(text.trimEnd().split('\n\n').at(-1)).toContain('event: response.failed')
  })
})

test('that every route is down is an error that keeps clients from repeating at once', async () => {
  const headers = { 'retry-after': '7' }
  await standin.script({ times: 9, status: 503, headers, frames: ['{}'] })
  const answer = await post({ model: 'mistral-small', input: 'go', stream: true })
  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).toBeNull()
  expect(answer.headers.get('retry-after-ms')).toBe('7000')
  expect(await answer.json()).toMatchObject({
    error: { code: 'server_is_overloaded', service_code: 'routes_unavailable' },
  })
})
