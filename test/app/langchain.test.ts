import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { gather } from '../support/gather.ts'
import { useSdkSession } from '../support/sdk-session.ts'

const session = useSdkSession()

function chat(model: string): ChatOpenAI {
  const { baseURL, apiKey, fetch } = session()
  return new ChatOpenAI({ model, apiKey, configuration: { baseURL, fetch }, maxRetries: 0 })
}

const weather = tool(({ city }) => `sunny in ${city}`, {
  name: 'weather',
  description: 'The weather in a city',
  schema: z.object({ city: z.string() }),
})

describe('LangChain JS', () => {
  test('invokes a model', async () => {
    const answer = await chat('mistral-small').invoke('Hello!')
    expect(answer.text).toContain('You said: Hello!')
    expect(answer).toHaveProperty('usage_metadata.output_tokens', expect.any(Number))
  })

  test('streams a model', async () => {
    const chunks = await gather(await chat('mistral-small').stream('Please count to 50'))
    const text = chunks.map((chunk) => chunk.text).join('')
    expect(text).toMatch(/^1 2 3 .* 50$/)
    const whole = chunks.reduce((sum, chunk) => sum.concat(chunk))
    expect(whole).toHaveProperty('usage_metadata.input_tokens', expect.any(Number))
  })

  test('binds tools', async () => {
    const answer = await chat('glm-5').bindTools([weather]).invoke('What is the weather in Berlin?')
    expect(answer.tool_calls?.[0]).toMatchObject({ name: 'weather', args: { city: 'Berlin' } })
  })

  test('sees the refusal of a wrong key', async () => {
    const { baseURL, fetch } = session()
    const model = new ChatOpenAI({
      model: 'glm-5',
      apiKey: 'wrong',
      configuration: { baseURL, fetch },
      maxRetries: 0,
    })
    await expect(model.invoke('Hello!')).rejects.toMatchObject({ status: 401 })
  })
})
