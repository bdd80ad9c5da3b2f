import { describe, expect, it } from 'vitest'
import {
  estimateCompletionTokens,
  estimatePromptTokens,
} from '../../../src/worker/provider/estimate.ts'
import { chatRequest } from '../../support/chat-fixtures.ts'

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

describe('estimateCompletionTokens', () => {
  it.each([
    [0, 0],
    [1, 1],
    [3, 1],
    [4, 2],
  ])('takes %d bytes for %d tokens', (bytes, tokens) => {
    expect(estimateCompletionTokens(bytes)).toBe(tokens)
  })
})
