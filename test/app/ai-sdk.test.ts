import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, stepCountIs, streamText, tool, transcribe } from 'ai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { TRANSCRIPT_TEXT } from '../../src/standin/answers.ts'
import { wav } from '../support/audio-samples.ts'
import { gather } from '../support/gather.ts'
import { useSdkSession } from '../support/sdk-session.ts'

const session = useSdkSession()

function model(id: string) {
  const { baseURL, apiKey, fetch } = session()
  const provider = createOpenAICompatible({ name: 'router', baseURL, apiKey, fetch })
  return provider(id)
}

const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
})

describe('the Vercel AI SDK', () => {
  test('generates text', async () => {
    const result = await generateText({
      model: model('mistral-small'),
      prompt: 'Hello!',
      include: { responseBody: true },
    })
    expect(result.text).toContain('You said: Hello!')
    expect(result.finishReason).toBe('stop')
    expect(result.usage.inputTokens).toBeGreaterThan(0)
    expect(result.response.body).toHaveProperty('service.receipt_id')
  })

  test('streams text', async () => {
    const result = streamText({ model: model('mistral-small'), prompt: 'Please count to 100' })
    const parts = await gather(result.textStream)
    expect(parts.length).toBeGreaterThan(5)
    expect(parts.join('')).toMatch(/^1 2 3 .* 100$/)
    expect(await result.finishReason).toBe('stop')
  })

  test('runs tools and takes their results back', async () => {
    const result = await generateText({
      model: model('glm-5'),
      prompt: 'What is the weather in Berlin?',
      tools: { weather },
      stopWhen: stepCountIs(3),
    })
    expect(result.steps[0]?.toolCalls[0]).toMatchObject({
      toolName: 'weather',
      input: { city: 'Berlin' },
    })
    expect(result.text).toContain('sunny in Berlin')
  })

  test('streams tool calls', async () => {
    const result = streamText({
      model: model('glm-5'),
      prompt: 'What is the weather in Berlin?',
      tools: { weather },
      stopWhen: stepCountIs(3),
    })
    expect(await result.text).toContain('sunny in Berlin')
    expect(await result.steps).toHaveLength(2)
  })

  test('gets reasoning as reasoning parts, whole and streamed', async () => {
    const whole = await generateText({ model: model('glm-5'), prompt: 'Hello!' })
    expect(whole.reasoningText).toContain('A stand-in does not think')
    const streamed = streamText({ model: model('glm-5'), prompt: 'Hello!' })
    expect(await streamed.reasoningText).toContain('A stand-in does not think')
  })

  test('asks for no reasoning through provider options', async () => {
    const result = await generateText({
      model: model('glm-5'),
      prompt: 'Hello!',
      providerOptions: { router: { reasoning: 'off' } },
    })
    expect(result.reasoningText).toBeUndefined()
  })

  test('sees the refusal of an unknown model', async () => {
    const refused = generateText({ model: model('no-such-model'), prompt: 'Hello!', maxRetries: 0 })
    await expect(refused).rejects.toMatchObject({
      statusCode: 404,
      data: { error: { code: 'model_not_found' } },
    })
  })

  test('transcribes with the provider for OpenAI', async () => {
    const { baseURL, apiKey, fetch } = session()
    const openai = createOpenAI({ baseURL, apiKey, fetch })
    const result = await transcribe({
      model: openai.transcription('whisper-large-v3'),
      audio: wav(2).bytes,
      providerOptions: { openai: { language: 'en', responseFormat: 'verbose_json' } },
    })
    expect(result.text).toBe(TRANSCRIPT_TEXT)
    expect(result.segments).toHaveLength(2)
    expect(result.durationInSeconds).toBe(4.2)
  })
})
