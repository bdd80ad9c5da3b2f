import { describe, expect, it } from 'vitest'
import {
  estimatePromptTokens,
  maxCompletionTokens,
  maxPromptTokens,
  textBytesIn,
} from '../../../src/worker/provider/estimate.ts'
import { estimateTextTokens } from '../../../src/worker/stream/estimate-text.ts'
import { chatRequest, chatRoute } from '../../support/chat-fixtures.ts'

const estimate = (messages: unknown[], members = {}) =>
  estimatePromptTokens(chatRequest({ model: 'm', messages, ...members }))
const content = (value: unknown) => [{ role: 'user', content: value }]
const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(9000)}` } }

describe('estimatePromptTokens', () => {
  it.each([
    ['an empty message', content(null), 16],
    ['a short text, rounded up', content('abcd'), 16 + 2],
    ['a text by its bytes of UTF-8', content('é机😀'), 16 + 3],
    ['two messages, rounded once', [...content('a'), ...content('b')], 32 + 1],
    [
      'text parts',
      content([
        { type: 'text', text: 'abc' },
        { type: 'text', text: 'def' },
      ]),
      16 + 2,
    ],
    ['an image, however large', content([image, { type: 'text', text: 'abc' }]), 16 + 4096 + 1],
    [
      'a part of an unknown type',
      content([{ type: 'input_audio', input_audio: { data: 'AA' } }]),
      16 + 4096,
    ],
    [
      'a part that only looks like text',
      content([{ text: 'abc', type: 'image_url' }]),
      16 + 4096 + 1,
    ],
    [
      'earlier reasoning',
      [{ role: 'assistant', reasoning: 'abc', reasoning_content: 'abc' }],
      16 + 2,
    ],
    ['tool calls as written', [{ role: 'assistant', tool_calls: [{ id: 'a' }] }], 16 + 4],
  ])('counts %s', (_, messages, expected) => {
    expect(estimate(messages)).toBe(expected)
  })

  it('counts escapes as what they stand for', () => {
    const text =
      '{"model":"m","messages":[{"role":"user","content":"\\u0041\\n\\u673a\\ud83d\\ude00"}]}'
    expect(estimatePromptTokens(chatRequest(text))).toBe(16 + 3)
  })

  it('counts tools as written', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }]
    const bytes = JSON.stringify(tools).length
    expect(estimate(content('abc'), { tools })).toBe(16 + Math.ceil((3 + bytes) / 3))
  })
})

describe('textBytesIn', () => {
  const bytesIn = (more: object) =>
    textBytesIn(
      chatRequest({ model: 'm', messages: [{ role: 'user', content: 'x' }], ...more }),
      86_000,
    )

  it('takes all of an answer for text', () => {
    expect(bytesIn({})).toBe(86_000)
    expect(bytesIn({ logprobs: false, top_logprobs: 20 })).toBe(86_000)
  })

  it('leaves out the log probabilities that were asked for, of each token and of its alternatives', () => {
    expect(bytesIn({ logprobs: true })).toBe(6_000)
    expect(bytesIn({ logprobs: true, top_logprobs: 1 })).toBe(Math.ceil((86_000 * 3) / 83))
    expect(bytesIn({ logprobs: true, top_logprobs: 'x' })).toBe(6_000)
  })
})

describe('estimateTextTokens', () => {
  it.each([
    [0, 0],
    [1, 1],
    [3, 1],
    [4, 2],
  ])('takes %d bytes for %d tokens', (bytes, tokens) => {
    expect(estimateTextTokens(bytes)).toBe(tokens)
  })
})

/** What the bound says beyond the base. */
function most(body: string | object): number {
  return maxPromptTokens(chatRequest(body), chatRoute()) - 1024
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

describe('maxPromptTokens', () => {
  it.each([
    ['text', content('é机😀 and more')],
    [
      'calls in the older form',
      [{ role: 'assistant', function_call: { arguments: 'x'.repeat(99) } }],
    ],
    ['members that nobody knows', [{ role: 'user', content: null, notes: 'x'.repeat(99) }]],
    ['names', [{ role: 'user', content: 'a', name: 'x'.repeat(99) }]],
    ['text in parts', content([{ type: 'text', text: 'x'.repeat(99) }])],
    ['an image in a text part', content([{ type: 'text', text: 'a', image_url: image.image_url }])],
  ])('counts every byte of %s', (_, messages) => {
    expect(most({ model: 'm', messages })).toBe(bytesOf(messages))
  })

  it('counts every byte of members that are passed on, and of no other', () => {
    const messages = content('a')
    const passed = { tools: [{ type: 'function' }], response_format: { type: 'x' }, user: 'me' }
    const bytes = Object.values(passed).reduce((sum, value) => sum + bytesOf(value), 0)
    expect(most({ model: 'm', messages, ...passed, unknown: 'x'.repeat(99) })).toBe(
      bytesOf(messages) + bytes,
    )
  })

  it("counts every byte of members that the route's `forward` names: a template may put them into the prompt", () => {
    const messages = content('a')
    const documents = [{ text: 'x'.repeat(9000) }]
    const request = chatRequest({ model: 'm', messages, documents, notes: 'x' })
    const bytes = bytesOf(messages) + bytesOf(documents)
    const route = chatRoute({ forward: ['documents', 'min_p'] })
    expect(maxPromptTokens(request, route)).toBe(1024 + bytes)
  })

  const without = (part: object, payload: string) => bytesOf(content([part])) - bytesOf(payload)
  const url = `data:image/png;base64,${'A'.repeat(9000)}`
  const data = 'A'.repeat(1600)
  const video = { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } }
  const audio = { type: 'input_audio', input_audio: { data, format: 'wav' } }
  const elsewhere = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  const bare = { type: 'image_url', image_url: url }
  const file = { type: 'file', file: { file_data: data } }
  const text = { type: 'image_url', text: 'x'.repeat(500), image_url: { url } }
  const spoken = Math.ceil(bytesOf(data) / 16)

  it.each<[what: string, part: object, tokens: number]>([
    ['an inline image by its kind', image, without(image, image.image_url.url) + 16_384],
    ['an inline image under a bare name', bare, without(bare, url) + 16_384],
    ['an inline video by its kind', video, without(video, video.video_url.url) + 131_072],
    ['inline audio by its length', audio, without(audio, data) + spoken + 32_768],
    ['an image elsewhere by its kind', elsewhere, bytesOf(content([elsewhere])) + 16_384],
    ['a file by its kind and every byte', file, bytesOf(content([file])) + 32_768],
    ['text beside an image by every byte', text, without(text, url) + 16_384],
  ])('counts %s', (_, part, tokens) => {
    expect(most({ model: 'm', messages: content([part]) })).toBe(tokens)
  })

  it('follows what the route says of its provider', () => {
    const input_bound = {
      ...chatRoute().config.input_bound,
      tokens_per_byte: 0.5,
      base_tokens: 10,
      image_tokens: 100,
    }
    const messages = content([image])
    const request = chatRequest({ model: 'm', messages })
    const bytes = without(image, image.image_url.url)
    expect(maxPromptTokens(request, chatRoute({ input_bound }))).toBe(
      10 + Math.ceil(bytes / 2) + 100,
    )
  })

  it('is never less than the estimate', () => {
    for (const messages of [
      content(''),
      content('a'),
      content([image]),
      content('机'.repeat(99)),
    ]) {
      const request = chatRequest({ model: 'm', messages })
      expect(maxPromptTokens(request, chatRoute())).toBeGreaterThanOrEqual(
        estimatePromptTokens(request),
      )
    }
  })
})

describe('maxCompletionTokens', () => {
  const route = chatRoute({ max_output_tokens: 500 })

  it.each([
    ['the cap, for each answer', { maxTokens: 7, choices: 3 }, 21],
    ["the route's cap without one", { maxTokens: undefined, choices: 2 }, 1000],
    ['no more than a double holds', { maxTokens: 2 ** 53 - 1, choices: 9 }, 2 ** 53 - 1],
  ])('is %s', (_, asked, tokens) => {
    expect(maxCompletionTokens(asked, route)).toBe(tokens)
  })
})
