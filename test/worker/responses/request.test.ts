import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import {
  RESPONSES_ITEMS,
  RESPONSES_MEMBERS,
  RESPONSES_TOOLS,
} from '../../../src/worker/responses/members.ts'
import { parseResponsesRequest } from '../../../src/worker/responses/request.ts'

function parse(body: object) {
  return parseResponsesRequest(utf8(JSON.stringify({ model: 'm', input: 'hi', ...body })))
}

/** The chat body that a request becomes. */
function chatOf(body: object): Record<string, unknown> {
  return JSON.parse(fromUtf8(parse(body).chat.bytes))
}

function refusalOf(body: object): unknown[] {
  try {
    parse(body)
  } catch (error) {
    if (error instanceof ApiError) return [error.code, error.details.param, error.message]
    throw error
  }
  return expect.unreachable()
}

const user = { role: 'user', content: 'hi' }
const call = (id: string, name = 'f', args = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
const callItem = (id: string) => ({
  type: 'function_call',
  call_id: id,
  name: 'f',
  arguments: '{}',
})
const outputItem = (id: string, output: unknown) => ({
  type: 'function_call_output',
  call_id: id,
  output,
})

describe('input becomes messages', () => {
  test.each<[string, object, object[]]>([
    ['text', {}, [user]],
    [
      'instructions and developer messages are one system message at the head',
      {
        instructions: 'a',
        input: [{ role: 'developer', content: [{ type: 'input_text', text: 'b' }] }, user],
      },
      [{ role: 'system', content: 'a\n\nb' }, user],
    ],
    [
      'reasoning, text and parallel calls are one assistant message, results directly after it',
      {
        input: [
          user,
          { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }] },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] },
          callItem('1'),
          callItem('2'),
          { role: 'user', content: 'wait' },
          outputItem('2', 'two'),
          outputItem('1', [{ type: 'input_text', text: 'one' }]),
        ],
      },
      [
        user,
        { role: 'assistant', content: 'ok', reasoning: 'Hm', tool_calls: [call('1'), call('2')] },
        { role: 'tool', tool_call_id: '2', content: 'two' },
        { role: 'tool', tool_call_id: '1', content: 'one' },
        { role: 'user', content: 'wait' },
      ],
    ],
    [
      'calls one after the other are one assistant message each',
      {
        input: [user, callItem('1'), outputItem('1', 'a'), callItem('2'), outputItem('2', 'b')],
      },
      [
        user,
        { role: 'assistant', content: null, tool_calls: [call('1')] },
        { role: 'tool', tool_call_id: '1', content: 'a' },
        { role: 'assistant', content: null, tool_calls: [call('2')] },
        { role: 'tool', tool_call_id: '2', content: 'b' },
      ],
    ],
    [
      'custom calls carry their input as an argument, namespaces stand ahead of names',
      {
        input: [
          user,
          { type: 'custom_tool_call', call_id: '1', name: 'sh', input: 'ls "a"' },
          { ...callItem('2'), namespace: 'ns' },
          { type: 'custom_tool_call_output', call_id: '1', output: 'x' },
        ],
      },
      [
        user,
        {
          role: 'assistant',
          content: null,
          tool_calls: [call('1', 'sh', '{"input":"ls \\"a\\""}'), call('2', 'ns__f')],
        },
        { role: 'tool', tool_call_id: '1', content: 'x' },
      ],
    ],
    [
      'images of a tool follow its result as a user message',
      {
        input: [
          user,
          callItem('1'),
          outputItem('1', [{ type: 'input_image', image_url: 'data:,x', detail: 'low' }]),
        ],
      },
      [
        user,
        { role: 'assistant', content: null, tool_calls: [call('1')] },
        { role: 'tool', tool_call_id: '1', content: '' },
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'data:,x', detail: 'low' } }],
        },
      ],
    ],
    [
      'files by their data, messages of agents',
      {
        input: [
          { type: 'agent_message', content: [{ type: 'text', text: 'done' }] },
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'read' },
              { type: 'input_file', file_data: 'data:,x', filename: 'a.pdf' },
            ],
          },
        ],
      },
      [
        { role: 'assistant', content: 'done' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'read' },
            { type: 'file', file: { file_data: 'data:,x', filename: 'a.pdf' } },
          ],
        },
      ],
    ],
  ])('%s', (_, body, messages) => {
    expect(chatOf(body)['messages']).toEqual(messages)
  })
})

describe('members become members', () => {
  const f = { type: 'function', name: 'f', parameters: { type: 'object' } }
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]

  test.each<[object, object]>([
    [{ max_output_tokens: 9 }, { max_tokens: 9 }],
    [{ reasoning: { effort: 'none' } }, { reasoning: 'off' }],
    [{ reasoning: { effort: 'high', summary: 'auto' } }, { reasoning: 'high' }],
    [
      { temperature: 0.5, top_p: 0.9, user: 'u' },
      { temperature: 0.5, top_p: 0.9, user: 'u' },
    ],
    [
      { stream: true, failover: ['a'] },
      { stream: true, failover: ['a'] },
    ],
    [{ text: { format: { type: 'text' } } }, {}],
    [
      { text: { format: { type: 'json_schema', name: 's', schema: {}, strict: true } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 's', schema: {}, strict: true },
        },
      },
    ],
    [
      { tools: [f], parallel_tool_calls: false },
      { tools, parallel_tool_calls: false },
    ],
    [{ parallel_tool_calls: false, tool_choice: 'required', tools: [{ type: 'web_search' }] }, {}],
    [
      { tools: [f], tool_choice: { type: 'function', name: 'f' } },
      { tools, tool_choice: { type: 'function', function: { name: 'f' } } },
    ],
    [
      {
        tools: [f, { ...f, name: 'g' }],
        tool_choice: {
          type: 'allowed_tools',
          mode: 'required',
          tools: [{ type: 'function', name: 'f' }],
        },
      },
      { tools, tool_choice: 'required' },
    ],
    [{ tools: [f], tool_choice: { type: 'web_search' } }, { tools }],
    [{ top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
    // The default of the format, which asks for none.
    [{ top_logprobs: 0 }, {}],
    [{ include: ['message.output_text.logprobs'] }, { logprobs: true, top_logprobs: 0 }],
    [{ store: true, background: false, truncation: 'disabled', previous_response_id: null }, {}],
  ])('%j', (body, chat) => {
    expect(chatOf(body)).toEqual({ model: 'm', messages: [user], ...chat })
  })
})

const INT_64 = '{"minimum":-9223372036854775808,"maximum":9223372036854775807}'
const SCHEMA = `{"type":"object","properties":{"id":${INT_64}}}`

test.each([
  `"tools":[{"type":"function","name":"f","parameters":${SCHEMA}}]`,
  `"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f","parameters":${SCHEMA}}]}]`,
  `"text":{"format":{"type":"json_schema","name":"f","schema":${SCHEMA}}}`,
])(
  'integers that a double cannot hold stay as they are in schemas, and in the answer: %s',
  (member) => {
    const { chat, echo } = parseResponsesRequest(utf8(`{"model":"m","input":"hi",${member}}`))
    expect(fromUtf8(chat.bytes)).toContain(SCHEMA)
    expect(JSON.stringify(echo)).toContain(member.slice(1))
  },
)

test('an earlier call that was cut off before its arguments has an empty object of them, which servers can parse', () => {
  const input = [user, { ...callItem('c'), arguments: '' }, outputItem('c', 'cut off')]
  expect(chatOf({ input })).toMatchObject({ messages: [user, { tool_calls: [call('c')] }, {}] })
})

test('a schema that is such an integer is refused like every other number', () => {
  const tool = '{"type":"function","name":"f","parameters":12345678901234567891}'
  const body = utf8(`{"model":"m","input":"hi","tools":[${tool}]}`)
  expect(() => parseResponsesRequest(body)).toThrow('"tools" must be functions with a name.')
})

describe('what has no meaning here is named, and never forwarded', () => {
  test('members of the table and unknown ones', () => {
    const body = {
      client_metadata: { path: 'SECRET' },
      prompt_cache_key: 'SECRET',
      text: { verbosity: 'low' },
      include: ['file_search_call.results'],
      tools: [{ type: 'mcp', server_url: 'SECRET' }],
      invented: 'SECRET',
      input: [
        user,
        { type: 'web_search_call', id: 'SECRET' },
        { type: 'item_reference', id: 'rs_1' },
      ],
    }
    expect(parse(body).dropped).toEqual([
      'client_metadata',
      'prompt_cache_key',
      'invented',
      'input.web_search_call',
      'input.item_reference',
      'tools.mcp',
      'text.verbosity',
      'include.file_search_call.results',
    ])
    expect(JSON.stringify(chatOf(body))).not.toContain('SECRET')
  })

  test.each(RESPONSES_MEMBERS.filter(({ becomes }) => becomes === 'dropped'))(
    'the table says so of $member',
    ({ member }) => {
      expect(parse({ [member]: { x: 'SECRET' } }).dropped).toEqual([member])
    },
  )

  test.each(RESPONSES_ITEMS.filter(({ becomes }) => becomes === 'dropped'))(
    'the table says so of items of type $member',
    ({ member }) => {
      expect(parse({ input: [user, { type: member }] }).dropped).toEqual([`input.${member}`])
    },
  )
})

describe('refused', () => {
  test.each(RESPONSES_MEMBERS.filter(({ becomes }) => becomes === 'refused'))(
    '$member, as the table says',
    ({ member, note }) => {
      const message = `"${member}": ${note}.`
      expect(refusalOf({ [member]: 'x' })).toEqual(['invalid_request_error', member, message])
    },
  )

  test.each<[string, string, object]>([
    ['missing_field', 'input', { input: null }],
    ['missing_field', 'model', { model: null }],
    ['invalid_request_error', 'input', { input: [] }],
    ['invalid_request_error', 'input', { input: 5 }],
    ['invalid_request_error', 'input[1].type', { input: [user, { type: 'invented' }] }],
    [
      'invalid_request_error',
      'input[0].type',
      { input: [{ type: 'item_reference', id: 'msg_1' }] },
    ],
    ['invalid_request_error', 'input[1].call_id', { input: [user, outputItem('1', 'a')] }],
    [
      'invalid_request_error',
      'input[0].content[0].type',
      { input: [{ role: 'user', content: [{ type: 'x' }] }] },
    ],
    [
      'invalid_request_error',
      'input[0].content[0]',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
    ],
    ['invalid_request_error', 'input[0]', { input: [{ role: 'critic', content: 'x' }] }],
    ['invalid_request_error', 'reasoning.effort', { reasoning: { effort: 'SECRET' } }],
    ['invalid_request_error', 'max_output_tokens', { max_output_tokens: 0 }],
    ['invalid_request_error', 'temperature', { temperature: 'SECRET' }],
    ['invalid_request_error', 'text', { text: { format: { type: 'SECRET' } } }],
    [
      'invalid_request_error',
      'tools',
      {
        tools: [
          { type: 'function', name: 'f' },
          { type: 'function', name: 'f' },
        ],
      },
    ],
    [
      'invalid_request_error',
      'tools',
      {
        tools: [
          { type: 'function', name: 'a__b' },
          { type: 'namespace', name: 'a', tools: [{ type: 'function', name: 'b' }] },
        ],
      },
    ],
    [
      'invalid_request_error',
      'tool_choice',
      { tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'function', name: 'g' } },
    ],
  ])('%s of %s: %j', (code, param, body) => {
    const refusal = refusalOf(body)
    expect(refusal.slice(0, 2)).toEqual([code, param])
    expect(refusal[2]).not.toContain('SECRET')
  })

  test.each(['system', 'developer', 'assistant', 'agent'])(
    'an image or a file in a message of %s, which would be lost: the chat format has them in those of users',
    (role) => {
      const type = role === 'agent' ? { type: 'agent_message' } : { role }
      const image = { type: 'input_image', image_url: 'data:,SECRET' }
      const file = { type: 'input_file', file_data: 'data:,SECRET' }
      for (const media of [image, file]) {
        const content = [{ type: 'input_text', text: 'a' }, media]
        const param = 'input[0].content[1].type'
        const message = `"${param}": images and files may only be in messages of the user.`
        expect(refusalOf({ input: [{ ...type, content }, user] })).toEqual([
          'invalid_request_error',
          param,
          message,
        ])
      }
    },
  )

  test.each([
    ['{"model"', 'The request body is not valid JSON.'],
    ['[]', 'The request body must be a JSON object.'],
    ['null', 'The request body must be a JSON object.'],
    ['"x"', 'The request body must be a JSON object.'],
  ])('a body that is no JSON object: %s', (body, message) => {
    expect(() => parseResponsesRequest(utf8(body))).toThrow(
      expect.objectContaining({ code: 'invalid_request_error', message }),
    )
  })
})

test('the tables name each member once, and the tools are those that are read', () => {
  for (const table of [RESPONSES_MEMBERS, RESPONSES_ITEMS, RESPONSES_TOOLS]) {
    expect(new Set(table.map(({ member }) => member)).size).toBe(table.length)
  }
  for (const { member } of RESPONSES_TOOLS) {
    expect(parse({ tools: [{ type: member, name: 'a', tools: [] }] }).dropped).toEqual([])
  }
})
