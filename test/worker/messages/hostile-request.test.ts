import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { parseMessagesRequest } from '../../../src/worker/messages/request.ts'

/** As many as a body may have. Work that grows with the square takes minutes at these lengths, other work less than a second. */
const LENGTH = 70_000
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
    if (error instanceof ApiError) {
      const { param } = error.details
      return [error.code, error.message, ...(param === undefined ? [] : [param])]
    }
    throw error
  }
  return expect.unreachable()
}

const many = <T>(one: T): T[] => Array.from({ length: LENGTH }, () => one)

describe('a body full of one thing is read in a time that grows with its length', () => {
  test.each(['{"name":"a"}', '{"type":"x"}', '{}', '[]', '1'])(
    'tools (%s), which are counted before one is looked at',
    (tool) => {
      const body = (count: number) =>
        `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[${Array(count).fill(tool).join(',')}]}`
      const tooMany = ['invalid_request_error', '"tools" must have at most 1024 entries.', 'tools']
      expect(refusalOf(body(1025))).toEqual(tooMany)
      expect(refusalOf(body(100_000))).toEqual(tooMany)
      expect(refusalOf(body(790_000))[0]).toBe('request_too_large')
    },
  )

  test('as many tools as a request may have are read', () => {
    const tools = Array.from({ length: 1024 }, () => ({ name: 'f' }))
    expect(parse({ tools }).members.has('tools')).toBe(true)
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
    const content = Array.from({ length: 45_000 }, () => image)
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
  const nested = (open: string, close: string) => open.repeat(30_000) + close.repeat(30_000)
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
