import { expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { parseResponsesRequest } from '../../../src/worker/responses/request.ts'

function refusalOf(members: string): unknown[] {
  try {
    parseResponsesRequest(utf8(`{"model":"m","input":"a",${members}}`))
  } catch (error) {
    if (error instanceof ApiError) return [error.code, error.details.param, error.message]
    throw error
  }
  return expect.unreachable()
}

/** As many as a body may have: descriptions of so many wrong entries would take hundreds of MiB. */
const wrong = `[${'1,'.repeat(520_000)}1]`

test.each([
  ['tools', `"tools":${wrong}`, '"tools" must have at most 1024 entries.'],
  [
    'tools',
    `"tools":[{"type":"namespace","name":"a","tools":${wrong}}]`,
    '"tools" must be namespaces with a name and tools.',
  ],
  [
    'tool_choice',
    `"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","tools":${wrong}}`,
    '"tool_choice" must be auto, none, required, or an object that names a tool.',
  ],
  ['include', `"include":${wrong}`, '"include" must have at most 1024 entries.'],
  [
    'input[0]',
    `"input":[{"role":"user","content":${wrong}}]`,
    '"input[0]" must be a message with a role and content.',
  ],
])(
  'hundreds of thousands of wrong entries in %s are refused in a moment',
  { timeout: 60_000 },
  (param, members, message) => {
    expect(refusalOf(members)).toEqual(['invalid_request_error', param, message])
  },
)

const list = (count: number, entry: (index: number) => string) =>
  `[${Array.from({ length: count }, (_, index) => entry(index)).join(',')}]`
const custom = (index: number) => `{"type":"custom","name":"${index}"}`
const namespace = (count: number) => (index: number) =>
  `{"type":"namespace","name":"n${index}","tools":${list(count, custom)}}`

test.each([
  ['tools', `"tools":${list(1025, custom)}`],
  ['tools', `"tools":${list(60_000, custom)}`],
  ['tools', `"tools":${list(1025, () => '{"type":"web_search"}')}`],
  ['tools', `"tools":${list(1, namespace(1025))}`],
  ['tools', `"tools":${list(33, namespace(32))}`],
  ['tools', `"tools":${list(1025, namespace(0))}`],
  [
    'tool_choice.tools',
    `"tools":${list(1, custom)},"tool_choice":{"type":"allowed_tools","tools":${list(1025, custom)}}`,
  ],
  ['include', `"include":${list(1025, () => '"a"')}`],
])('more than 1,024 entries in %s are refused before one is read', (param, members) => {
  const message = `"${param}" must have at most 1024 entries.`
  expect(refusalOf(members)).toEqual(['invalid_request_error', param, message])
})

test.each([
  ['by themselves', list(1024, custom)],
  ['in namespaces', list(32, namespace(32))],
])('1,024 tools are read, %s', (_, tools) => {
  const { chat } = parseResponsesRequest(utf8(`{"model":"m","input":"a","tools":${tools}}`))
  expect(JSON.parse(fromUtf8(chat.bytes))).toHaveProperty('tools.length', 1024)
})

test('a body nested too deeply for the stack is refused, not an internal error', () => {
  const nested = '['.repeat(100_000) + ']'.repeat(100_000)
  expect(refusalOf(`"metadata":{"a":${nested}}`)).toEqual([
    'invalid_request_error',
    undefined,
    'The request body is not valid JSON: nested deeper than 512 levels.',
  ])
})
