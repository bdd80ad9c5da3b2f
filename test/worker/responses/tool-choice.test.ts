import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { parseResponsesRequest } from '../../../src/worker/responses/request.ts'
import { refusalOf } from '../../support/refusal.ts'

const parse = (tool_choice: unknown, tools?: unknown) =>
  parseResponsesRequest(utf8(JSON.stringify({ model: 'm', input: 'hi', tool_choice, tools })))

const chatOf = (request: ReturnType<typeof parse>): unknown =>
  JSON.parse(fromUtf8(request.chat.bytes))

const hosted = [{ type: 'web_search' }]
const allowed = (mode: string) => ({
  type: 'allowed_tools',
  mode,
  tools: [{ type: 'web_search' }],
})

/** None of what it allows can be called, so no call can be required. */
test('allowed_tools that requires a call and allows none of the functions forbids calls, and is named as dropped', () => {
  const functions = [{ type: 'function', name: 'f' }]
  const required = parse(allowed('required'), [...functions, ...hosted])
  expect(required.dropped).toEqual(['tools.web_search', 'tool_choice'])
  expect(chatOf(required)).toMatchObject({ tool_choice: 'none' })
  expect(parse(allowed('auto'), [...functions, ...hosted]).dropped).toEqual(['tools.web_search'])
})

test.each<[unknown, unknown]>([
  [[{ type: 'function', name: 'g' }], [{ type: 'function', name: 'f' }]],
  [
    [
      { type: 'function', name: 'f' },
      { type: 'custom', name: 'g' },
    ],
    [{ type: 'function', name: 'f' }],
  ],
  [[{ type: 'function', name: 'f', namespace: 'n' }], [{ type: 'function', name: 'f' }]],
  [[{ type: 'function' }], [{ type: 'function', name: 'f' }]],
  [[{ type: 'function', name: 'f' }], hosted],
  [[{ type: 'function', name: 'f' }], undefined],
])('allowed_tools of %j, one of which is not among the tools %j, is refused', (names, tools) => {
  for (const mode of ['auto', 'required']) {
    expect(refusalOf(() => parse({ type: 'allowed_tools', mode, tools: names }, tools))).toEqual({
      code: 'invalid_request_error',
      message: '"tool_choice" allows a tool that is not in "tools".',
      param: 'tool_choice',
    })
  }
})

test('allowed_tools may allow hosted tools beside functions, of namespaces too', () => {
  const tools = [
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] },
    { type: 'custom', name: 'c' },
    { type: 'function', name: 'g' },
    ...hosted,
  ]
  const names = [
    { type: 'function', name: 'f', namespace: 'n' },
    { type: 'custom', name: 'c' },
    ...hosted,
  ]
  expect(chatOf(parse({ type: 'allowed_tools', tools: names }, tools))).toMatchObject({
    tools: [{ function: { name: 'n__f' } }, { function: { name: 'c' } }],
    tool_choice: 'auto',
  })
})

/** Providers refuse the member without tools, so it is never forwarded there. */
describe('tool_choice where no tool is left that a model can call', () => {
  test.each<[unknown, unknown]>([
    ['required', undefined],
    ['required', hosted],
    [allowed('required'), hosted],
  ])('%j requires a call and is named as dropped', (choice, tools) => {
    const request = parse(choice, tools)
    expect(request.dropped).toContain('tool_choice')
    expect(chatOf(request)).toEqual({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
  })

  test.each<[unknown]>([['auto'], ['none'], [{ type: 'web_search' }], [allowed('auto')], [null]])(
    '%j requires none, and means the same without it',
    (choice) => {
      const request = parse(choice, hosted)
      expect(request.dropped).toEqual(['tools.web_search'])
      expect(chatOf(request)).not.toHaveProperty('tool_choice')
    },
  )

  test('a malformed one, and one of a tool that was not offered, are refused as beside tools', () => {
    for (const tools of [undefined, hosted, [{ type: 'function', name: 'f' }]]) {
      expect(refusalOf(() => parse('always', tools))).toEqual({
        code: 'invalid_request_error',
        message: '"tool_choice" must be auto, none, required, or an object that names a tool.',
        param: 'tool_choice',
      })
      expect(refusalOf(() => parse({ type: 'function', name: 'g' }, tools))).toEqual({
        code: 'invalid_request_error',
        message: '"tool_choice" names a tool that is not in "tools".',
        param: 'tool_choice',
      })
    }
  })
})
