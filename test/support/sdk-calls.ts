import Anthropic from '@anthropic-ai/sdk'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, streamText } from 'ai'
import OpenAI from 'openai'
import { gather } from './gather.ts'

/** What an SDK is given. */
export interface SdkTarget {
  /** With `/v1`. */
  readonly baseURL: string
  readonly apiKey: string
  /** In place of the runtime's own. */
  readonly fetch?: typeof fetch
}

/** One question through one SDK; the answer's text. */
export type SdkCall = (target: SdkTarget, prompt: string) => Promise<string>

const MODEL = 'glm-5'

const openai = ({ baseURL, apiKey, fetch }: SdkTarget) =>
  new OpenAI({ baseURL, apiKey, maxRetries: 0, ...(fetch && { fetch }) })

const aiModel = ({ baseURL, apiKey, fetch }: SdkTarget) =>
  createOpenAICompatible({ name: 'router', baseURL, apiKey, ...(fetch && { fetch }) })(MODEL)

const anthropic = ({ baseURL, apiKey, fetch }: SdkTarget) =>
  new Anthropic({
    baseURL: baseURL.replace(/\/v1$/, ''),
    apiKey,
    maxRetries: 0,
    ...(fetch && { fetch }),
  })

const langchain = ({ baseURL, apiKey, fetch }: SdkTarget) =>
  new ChatOpenAI({
    model: MODEL,
    apiKey,
    configuration: { baseURL, ...(fetch && { fetch }) },
    maxRetries: 0,
  })

const asking = (prompt: string) => ({
  model: MODEL,
  messages: [{ role: 'user' as const, content: prompt }],
})

const textOf = (content: readonly { type: string; text?: string }[]) =>
  content.map(({ text = '' }) => text).join('')

/** Every SDK that people use with the router, for whole answers and for streams. */
export const SDK_CALLS: Readonly<Record<string, Readonly<Record<'whole' | 'streamed', SdkCall>>>> =
  {
    openai: {
      whole: async (target, prompt) => {
        const answer = await openai(target).chat.completions.create(asking(prompt))
        return answer.choices[0]?.message.content ?? ''
      },
      streamed: async (target, prompt) => {
        const body = { ...asking(prompt), stream: true } as const
        const chunks = await gather(await openai(target).chat.completions.create(body))
        return chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
      },
    },
    ai: {
      whole: async (target, prompt) =>
        (await generateText({ model: aiModel(target), prompt, maxRetries: 0 })).text,
      streamed: (target, prompt) =>
        Promise.resolve(streamText({ model: aiModel(target), prompt, maxRetries: 0 }).text),
    },
    '@anthropic-ai/sdk': {
      whole: async (target, prompt) => {
        const body = { ...asking(prompt), max_tokens: 200 }
        return textOf((await anthropic(target).messages.create(body)).content)
      },
      streamed: async (target, prompt) => {
        const body = { ...asking(prompt), max_tokens: 200 }
        return textOf((await anthropic(target).messages.stream(body).finalMessage()).content)
      },
    },
    '@langchain/openai': {
      whole: async (target, prompt) => (await langchain(target).invoke(prompt)).text,
      streamed: async (target, prompt) => {
        const parts = await gather(await langchain(target).stream(prompt))
        return parts.map(({ text }) => text).join('')
      },
    },
  }
