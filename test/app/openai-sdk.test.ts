import OpenAI, { APIError, toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { TRANSCRIPT_TEXT } from '../../src/standin/answers.ts'
import { wav } from '../support/audio-samples.ts'
import { gather } from '../support/gather.ts'
import { useSdkSession } from '../support/sdk-session.ts'

const session = useSdkSession()

function client(): OpenAI {
  const { baseURL, apiKey, fetch } = session()
  return new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 })
}

const HELLO = [{ role: 'user' as const, content: 'Hello!' }]
const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

function speech(): Promise<File> {
  return toFile(wav(2).bytes, 'speech.wav')
}

describe('the openai package', () => {
  test('gets a completion with its receipt', async () => {
    const answer = await client().chat.completions.create({ model: 'glm-5', messages: HELLO })
    expect(answer.choices[0]?.message.content).toContain('You said: Hello!')
    expect(answer.choices[0]?.finish_reason).toBe('stop')
    expect(answer.model).toBe('standin/glm-5')
    expect(answer.usage?.total_tokens).toBeGreaterThan(0)
    expect(answer).toHaveProperty('_request_id', expect.stringMatching(/^[0-9a-f-]{36}$/))
    expect(answer).toHaveProperty('service.receipt_id')
    expect(answer).toHaveProperty('service.requested_route', 'glm-5')
  })

  test.each(['glm-5', 'eu/glm-5', 'standin/glm-5', 'eu/standin/glm-5'])(
    'reaches the route with the selector %s',
    async (model) => {
      const answer = await client().chat.completions.create({ model, messages: HELLO })
      expect(answer.model).toBe('standin/glm-5')
    },
  )

  test('failure 34: iterates over a stream', async () => {
    const stream = await client().chat.completions.create({
      model: 'glm-5',
      messages: HELLO,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await gather(stream)
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
    expect(text).toContain('You said: Hello!')
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
    const last = chunks.at(-1)
    expect(last?.choices).toMatchObject([{ index: 0, delta: {}, finish_reason: 'stop' }])
    expect(last?.choices[0]?.delta).toEqual({})
    expect(last?.usage?.completion_tokens).toBeGreaterThan(0)
    expect(last).toHaveProperty('service.receipt_id')
  })

  test('gathers a stream with its helper', async () => {
    const stream = client().chat.completions.stream({
      model: 'mistral-small',
      messages: [{ role: 'user', content: 'Please count to 200' }],
      stream_options: { include_usage: true },
    })
    const completion = await stream.finalChatCompletion()
    expect(completion.choices[0]?.message.content).toMatch(/^1 2 3 .* 199 200$/)
    expect(completion.usage?.prompt_tokens).toBeGreaterThan(0)
    expect(completion).toHaveProperty('service.routed_model', 'standin/mistral-small')
  })

  test.each([false, true])('carries a tool call and its result (stream: %s)', async (streamed) => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'user', content: 'What is the weather in Berlin?' },
    ]
    const ask = { model: 'glm-5', messages, tools: [WEATHER] }
    const { choices } = streamed
      ? await client().chat.completions.stream(ask).finalChatCompletion()
      : await client().chat.completions.create(ask)
    expect(choices[0]?.finish_reason).toBe('tool_calls')
    const call = choices[0]?.message.tool_calls?.[0]
    if (choices[0] === undefined || call?.type !== 'function') throw new Error('no tool call')
    expect(call.function).toMatchObject({ name: 'weather', arguments: '{"city":"Berlin"}' })
    const { role, tool_calls } = choices[0].message
    messages.push({ role, tool_calls: tool_calls ?? [] })
    messages.push({ role: 'tool', tool_call_id: call.id, content: 'sunny' })
    const final = await client().chat.completions.create(ask)
    expect(final.choices[0]?.message.content).toBe('The tool answered: sunny')
  })

  test('lists models and retrieves one by an id with slashes', async () => {
    const page = await client().models.list()
    const ids = page.data.map((model) => model.id)
    expect(ids).toContain('gpt-oss-120b')
    expect(ids).toContain('eu/standin-two/gpt-oss-120b')
    const model = await client().models.retrieve('eu/standin-two/gpt-oss-120b')
    expect(model).toMatchObject({ id: 'eu/standin-two/gpt-oss-120b', object: 'model' })
  })

  test('reports refusals with code, param and request id', async () => {
    const refused = client().chat.completions.create({ model: 'no-such-model', messages: HELLO })
    const error: unknown = await refused.catch((reason: unknown) => reason)
    if (!(error instanceof APIError)) throw new Error('not an APIError')
    expect(error.status).toBe(404)
    expect(error.code).toBe('model_not_found')
    expect(error.param).toBe('model')
    expect(error.requestID).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('transcribes a file in every format', async () => {
    const { transcriptions } = client().audio
    const model = 'whisper-large-v3'
    const json = await transcriptions.create({ model, file: await speech() })
    expect(json.text).toBe(TRANSCRIPT_TEXT)
    expect(json).toHaveProperty('service.routed_model', 'standin/whisper-large-v3')
    expect(json).toHaveProperty('service.usage.billing_unit', 'audio_minute')
    const verbose = await transcriptions.create({
      model,
      file: await speech(),
      language: 'en',
      response_format: 'verbose_json',
    })
    expect(verbose.duration).toBe(4.2)
    expect(verbose.segments).toHaveLength(2)
    const text: unknown = await transcriptions.create({
      model,
      file: await speech(),
      response_format: 'text',
    })
    expect(text).toBe(TRANSCRIPT_TEXT)
  })
})
