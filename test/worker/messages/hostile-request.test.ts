import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { parseMessagesRequest } from '../../../src/worker/messages/request.ts'

/** Work that grows with the square of the body takes minutes at these lengths, other work less than a second. */
const LENGTH = 300_000
const TIMEOUT_MS = 60_000

const user = { role: 'user', content: 'hi' }

function parseText(text: string) {
  return parseMessagesRequest(utf8(text))
}

const parse = (body: object) =>
  parseText(JSON.stringify({ model: 'm', messages: [user], ...body })).chat

function refusalOf(text: string): unknown[] {
  try {
    parseText(text)
  } catch (error) {
    if (error instanceof ApiError) return [error.code, error.message]
    throw error
  }
  return expect.unreachable()
}

const many = <T>(one: T): T[] => Array.from({ length: LENGTH }, () => one)

describe('a body full of one thing is read in a time that grows with its length', () => {
  test('tools without a name', { timeout: TIMEOUT_MS }, () => {
    const body = JSON.stringify({ model: 'm', messages: [user], tools: many({}) })
    expect(refusalOf(body)).toEqual(['invalid_request_error', '"tools": a tool has no name.'])
  })

  test('tools with a name', { timeout: TIMEOUT_MS }, () => {
    expect(parse({ tools: many({ name: 'f' }) }).members.has('tools')).toBe(true)
  })

  test('messages of the system', { timeout: TIMEOUT_MS }, () => {
    const { bytes } = parse({ messages: [...many({ role: 'system', content: 'a' }), user] })
    const { messages } = JSON.parse(fromUtf8(bytes))
    expect(messages).toHaveLength(2)
    expect(messages[0].content).toHaveLength(LENGTH * 3 - 2)
  })

  test('images in a result of a tool', { timeout: TIMEOUT_MS }, () => {
    const use = { type: 'tool_use', id: 't', name: 'f', input: {} }
    const image = { type: 'image', source: { type: 'url', url: '' } }
    const content = Array.from({ length: 190_000 }, () => image)
    const result = { type: 'tool_result', tool_use_id: 't', content }
    const messages = [
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result] },
    ]
    const { messages: read } = JSON.parse(fromUtf8(parse({ messages }).bytes))
    expect(read[2].content).toHaveLength(content.length)
  })
})

describe('a body nested too deeply for the stack is refused, not an internal error', () => {
  const nested = (open: string, close: string) => open.repeat(100_000) + close.repeat(100_000)
  const refusal = [
    'invalid_request_error',
    'The request body is not valid JSON: nested deeper than 512 levels.',
  ]

  test('the input of a tool call', () => {
    const use = `{"type":"tool_use","id":"a","name":"b","input":${nested('[', ']')}}`
    const body = `{"model":"m","messages":[{"role":"assistant","content":[${use}]}]}`
    expect(refusalOf(body)).toEqual(refusal)
  })

  test('documents within documents', () => {
    const document = nested('{"type":"document","source":{"type":"content","content":[', ']}}')
    const body = `{"model":"m","messages":[{"role":"user","content":[${document}]}]}`
    expect(refusalOf(body)).toEqual(refusal)
  })
})
