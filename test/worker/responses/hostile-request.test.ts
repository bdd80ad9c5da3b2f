import { expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
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

/** Descriptions of so many wrong entries would take more memory than a process has. */
const wrong = `[${'1,'.repeat(4_000_000)}1]`

test.each([
  ['tools', `"tools":${wrong}`, '"tools" must be a list of tools, each with a type.'],
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
  ['include', `"include":${wrong}`, '"include" must be a list of strings.'],
  [
    'input[0]',
    `"input":[{"role":"user","content":${wrong}}]`,
    '"input[0]" must be a message with a role and content.',
  ],
])(
  'millions of wrong entries in %s are refused in a moment',
  { timeout: 60_000 },
  (param, members, message) => {
    expect(refusalOf(members)).toEqual(['invalid_request_error', param, message])
  },
)

test('a body nested too deeply for the stack is refused, not an internal error', () => {
  const nested = '['.repeat(100_000) + ']'.repeat(100_000)
  expect(refusalOf(`"metadata":{"a":${nested}}`)).toEqual([
    'invalid_request_error',
    undefined,
    'The request body is not valid JSON: nested deeper than 512 levels.',
  ])
})
