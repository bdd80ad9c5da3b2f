import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { parseMessagesRequest } from '../../../src/worker/messages/request.ts'
import { refusalOf } from '../../support/refusal.ts'

const messages = [{ role: 'user', content: 'hi' }]
const parse = (tool_choice: unknown, tools?: unknown) =>
  parseMessagesRequest(utf8(JSON.stringify({ model: 'm', messages, tool_choice, tools })))

const chatOf = (request: ReturnType<typeof parse>): unknown =>
  JSON.parse(fromUtf8(request.chat.bytes))

const vendor = [{ type: 'web_search_20250305', name: 'web_search' }]
const own = [{ name: 'f' }]

/** Providers refuse the member without tools, so it is never forwarded there. */
describe('tool_choice of a tool that is not there', () => {
  test.each<[object, unknown]>([
    [{ type: 'any' }, undefined],
    [{ type: 'any' }, vendor],
    [{ type: 'tool', name: 'web_search' }, vendor],
  ])('%j requires a call and is named as dropped', (choice, tools) => {
    const request = parse(choice, tools)
    expect(request.dropped).toContain('tool_choice')
    expect(chatOf(request)).toEqual({ model: 'm', messages })
  })

  test('a tool of the vendor cannot be required beside others either, which stay', () => {
    const choice = { type: 'tool', name: 'web_search', disable_parallel_tool_use: true }
    const request = parse(choice, [...vendor, ...own])
    expect(request.dropped).toEqual(['tools.web_search_20250305', 'tool_choice'])
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]
    expect(chatOf(request)).toEqual({ model: 'm', messages, tools, parallel_tool_calls: false })
  })

  test.each<[unknown]>([[{ type: 'auto' }], [{ type: 'none' }], [null]])(
    '%j requires none, and means the same without it',
    (choice) => {
      const request = parse(choice)
      expect(request.dropped).toEqual([])
      expect(chatOf(request)).toEqual({ model: 'm', messages })
    },
  )

  test('a malformed one, and one of a tool that was not offered, are refused as beside tools', () => {
    for (const tools of [undefined, vendor, own]) {
      expect(refusalOf(() => parse('any', tools))).toEqual({
        code: 'invalid_request_error',
        message: '"tool_choice" must be an object of type auto, any, tool or none.',
        param: 'tool_choice',
      })
      expect(refusalOf(() => parse({ type: 'tool', name: 'g' }, tools))).toEqual({
        code: 'invalid_request_error',
        message: '"tool_choice" names a tool that is not in "tools".',
        param: 'tool_choice',
      })
    }
  })
})

test('a budget of thinking that is no number of tokens is refused by what it must be', () => {
  const thinking = { type: 'enabled', budget_tokens: 0 }
  const body = utf8(JSON.stringify({ model: 'm', messages, thinking }))
  expect(refusalOf(() => parseMessagesRequest(body))).toEqual({
    code: 'invalid_request_error',
    message:
      '"thinking" must be an object of type adaptive or disabled, or enabled with budget_tokens of at least 1.',
    param: 'thinking',
  })
})
