import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { Agent, OpenAIResponsesModel, Runner } from '@openai/agents'
import { ChatAnthropic } from '@langchain/anthropic'
import { streamText } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FAILURES, startFailingRouter, type FailingRouter } from '../support/failing-router.ts'
import { gather } from '../support/gather.ts'

/** How often each client library asks where the router fails: the table of docs/api-formats.md. */

let router: FailingRouter

beforeAll(async () => {
  router = await startFailingRouter()
})
afterAll(() => router.close())

const apiKey = 'k'
const hello = [{ role: 'user' as const, content: 'hi' }]

const CLIENTS: Readonly<Record<string, (origin: string) => Promise<unknown>>> = {
  'openai `responses.stream`': (origin) => {
    const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey })
    return client.responses.stream({ model: 'm', input: 'hi' }).finalResponse()
  },
  '@openai/agents': async (origin) => {
    const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey })
    const agent = new Agent({ name: 'a', model: new OpenAIResponsesModel(client, 'm') })
    const run = await new Runner({ tracingDisabled: true }).run(agent, 'hi', { stream: true })
    await gather(run)
    await run.completed
  },
  '@ai-sdk/openai': (origin) => {
    const model = createOpenAI({ baseURL: `${origin}/v1`, apiKey })('m')
    return gather(streamText({ model, prompt: 'hi', onError: () => {} }).fullStream)
  },
  '@anthropic-ai/sdk': (origin) => {
    const client = new Anthropic({ baseURL: origin, apiKey })
    return client.messages.stream({ model: 'm', max_tokens: 9, messages: hello }).finalMessage()
  },
  '@ai-sdk/anthropic': (origin) => {
    const model = createAnthropic({ baseURL: `${origin}/v1`, apiKey })('m')
    return gather(streamText({ model, prompt: 'hi', onError: () => {} }).fullStream)
  },
}

/** Requests for each failure, in the order of `FAILURES`: nothing that was paid for is asked for twice. */
const REQUESTS = [1, 1, 1, 3, 3, 3, 1, 1]

describe.each(Object.entries(CLIENTS))('%s', (_, ask) => {
  test.each(FAILURES.map((failure, index) => [failure, REQUESTS[index]] as const))(
    'on "%s" asks %i times',
    async (failure, requests) => {
      await ask(router.origin(failure)).catch(() => {})
      expect(router.taken(failure)).toBe(requests)
    },
  )
})

/** It waits for a minute or more between seven requests, so all failures are tried at once. */
test('@langchain/anthropic asks for a refusal that may pass seven times, and else once', async () => {
  const origins = FAILURES.map((failure) => router.origin(failure))
  await Promise.all(
    origins.map(async (anthropicApiUrl) => {
      const model = new ChatAnthropic({ model: 'm', apiKey, anthropicApiUrl })
      await model
        .stream('hi')
        .then(gather, () => {})
        .catch(() => {})
    }),
  )
  const counts = FAILURES.map((failure) => [failure, router.taken(failure)])
  expect(Object.fromEntries(counts)).toEqual({
    '401': 1,
    '402': 1,
    '413': 1,
    '429': 7,
    '503': 7,
    'routes down': 7,
    'cut stream': 1,
    'error event': 1,
  })
}, 400_000)
