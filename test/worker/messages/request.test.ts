import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { withHeaderMembers } from '../../../src/worker/completion/header-members.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { MESSAGES_BLOCKS, MESSAGES_MEMBERS } from '../../../src/worker/messages/members.ts'
import { parseMessagesRequest } from '../../../src/worker/messages/request.ts'

const user = { role: 'user', content: 'hi' }

function parse(body: object) {
  return parseMessagesRequest(utf8(JSON.stringify({ model: 'm', messages: [user], ...body })))
}

/** The chat body that a request becomes. */
function chatOf(body: object): Record<string, unknown> {
  return JSON.parse(fromUtf8(parse(body).chat.bytes))
}

function messagesOf(...messages: object[]): unknown {
  return chatOf({ messages })['messages']
}

function refusalOf(what: object | (() => unknown)): unknown[] {
  try {
    if (typeof what === 'function') what()
    else parse(what)
  } catch (error) {
    if (error instanceof ApiError) return [error.code, error.details.param, error.message]
    throw error
  }
  return expect.unreachable()
}

const data = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
const use = { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }
const call = { id: 't', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }

describe('messages become messages', () => {
  test('system as text, as blocks and as a role is one message at the head', () => {
    expect(chatOf({ system: 'a' })['messages']).toEqual([{ role: 'system', content: 'a' }, user])
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cch=1;' },
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
    ]
    const messages = [{ role: 'system', content: 'b' }, user]
    expect(chatOf({ system, messages })['messages']).toEqual([
      { role: 'system', content: 'a\n\nb' },
      user,
    ])
  })

  test('an empty system prompt is none', () => {
    for (const system of ['', [{ type: 'text', text: '' }], []]) {
      expect(chatOf({ system })['messages']).toEqual([user])
    }
    expect(messagesOf({ role: 'system', content: '' }, user)).toEqual([user])
    expect(refusalOf({ messages: [{ role: 'system', content: '' }] })).toEqual([
      'invalid_request_error',
      'messages',
      '"messages" must not be empty.',
    ])
  })

  test.each<[string, unknown]>([
    ['as a text', 'x-anthropic-billing-header: cch=1;\n\nBe brief.\nBe kind.'],
    ['with carriage returns', 'x-anthropic-billing-header: cch=1;\r\nBe brief.\nBe kind.'],
    [
      'in one block',
      [{ type: 'text', text: 'x-anthropic-billing-header: cch=1;\nBe brief.\nBe kind.' }],
    ],
  ])('the billing header takes nothing with it that follows it %s', (_how, system) => {
    const head = { role: 'system', content: 'Be brief.\nBe kind.' }
    expect(chatOf({ system })['messages']).toEqual([head, user])
  })

  test('a system prompt that is only the billing header becomes no message', () => {
    const system = 'x-anthropic-billing-header: cch=1;\n'
    expect(chatOf({ system })['messages']).toEqual([user])
  })

  test('thinking, text and calls are one assistant message, results directly after it', () => {
    const assistant = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: '' },
        { type: 'text', text: 'ok' },
        use,
        { type: 'redacted_thinking', data: 'x' },
      ],
    }
    const result = {
      type: 'tool_result',
      tool_use_id: 't',
      content: [
        { type: 'text', text: 'r' },
        { type: 'image', source: data },
      ],
    }
    const next = { role: 'user', content: [{ type: 'text', text: 'go on' }, result] }
    expect(messagesOf(user, assistant, next)).toEqual([
      user,
      { role: 'assistant', content: 'ok', reasoning: 'Hm', tool_calls: [call] },
      { role: 'tool', tool_call_id: 't', content: 'r' },
      { role: 'user', content: [image] },
      { role: 'user', content: 'go on' },
    ])
  })

  test('integers that a double cannot hold stay as they are in earlier calls, and in no other calls than theirs', () => {
    const input = '{ "id":12345678901234567891, "b":0.50 }'
    const callOf = (id: string, text: string) =>
      `{"type":"tool_use","id":"${id}","name":"f","input":${text}}`
    const text = '{"type":"text","text":"hi","input":{"id":1}}'
    const blocks = `[${text},${callOf('1', '{"a":1.0}')},${callOf('2', input)}]`
    const messages = `[{"role":"user","content":"hi"},{"role":"assistant","content":${blocks}}]`
    const body = `{"messages":5,"model":"m","messages":${messages}}`
    const chat = JSON.parse(fromUtf8(parseMessagesRequest(utf8(body)).chat.bytes))
    expect(chat.messages[1].tool_calls).toMatchObject([
      { id: '1', function: { arguments: '{"a":1}' } },
      { id: '2', function: { arguments: input } },
    ])
  })

  test.each<[string, object, object]>([
    ['an image by data', { type: 'image', source: data }, image],
    [
      'an image by URL',
      { type: 'image', source: { type: 'url', url: 'https://a.example/b' } },
      { type: 'image_url', image_url: { url: 'https://a.example/b' } },
    ],
    [
      'a document by data',
      { type: 'document', title: 'a.pdf', source: { ...data, media_type: 'application/pdf' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } },
    ],
  ])('%s', (_, block, part) => {
    expect(messagesOf({ role: 'user', content: [block] })).toEqual([
      { role: 'user', content: [part] },
    ])
  })

  test.each<[object, string]>([
    [{ type: 'document', title: 'T', source: { type: 'text', data: 'd' } }, 'T\n\nd'],
    [{ type: 'document', source: { type: 'content', content: 'c' } }, 'c'],
    [
      { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'x' }] },
      't\ns\nx',
    ],
  ])('text of %j', (block, content) => {
    expect(messagesOf({ role: 'user', content: [block] })).toEqual([{ role: 'user', content }])
  })
})

const INT_64 = '{"minimum":-9223372036854775808,"maximum":9223372036854775807}'
const SCHEMA = `{"type":"object","properties":{"id":${INT_64}}}`

test.each([
  `"tools":[{"name":"f","input_schema":${SCHEMA}}]`,
  `"output_config":{"format":{"type":"json_schema","schema":${SCHEMA}}}`,
  `"output_format":{"type":"json_schema","schema":${SCHEMA}}`,
])('integers that a double cannot hold stay as they are in schemas: %s', (member) => {
  const body = `{"model":"m","messages":[{"role":"user","content":"hi"}],${member}}`
  expect(fromUtf8(parseMessagesRequest(utf8(body)).chat.bytes)).toContain(SCHEMA)
})

describe('members become members', () => {
  const schema = { type: 'object' }
  const f = {
    name: 'f',
    description: 'd',
    input_schema: schema,
    cache_control: {},
    defer_loading: true,
  }
  const tools = [
    { type: 'function', function: { name: 'f', description: 'd', parameters: schema } },
  ]
  const response_format = {
    type: 'json_schema',
    json_schema: { name: 'output', schema, strict: true },
  }

  test.each<[object, object]>([
    [
      { max_tokens: 5, temperature: 1, top_p: 0.5, top_k: 3 },
      { max_tokens: 5, temperature: 1, top_p: 0.5, top_k: 3 },
    ],
    [{ stop_sequences: ['x'] }, { stop: ['x'] }],
    [{ stop_sequences: [] }, {}],
    [{ stream: true }, { stream: true }],
    [{ stream: 'true' }, {}],
    [{ tools: [f] }, { tools }],
    [
      { tools: [f], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
      { tools, tool_choice: 'required', parallel_tool_calls: false },
    ],
    [
      { tools: [f], tool_choice: { type: 'tool', name: 'f' } },
      { tools, tool_choice: { type: 'function', function: { name: 'f' } } },
    ],
    [
      {
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
        tool_choice: { type: 'any' },
      },
      {},
    ],
    [{ output_config: { format: { type: 'json_schema', schema } } }, { response_format }],
    [{ output_format: { type: 'json_schema', schema } }, { response_format }],
    [{ failover: ['a'] }, { failover: ['a'] }],
  ])('%j', (body, chat) => {
    expect(chatOf(body)).toEqual({ model: 'm', messages: [user], ...chat })
  })

  test.each<[object, string | undefined, boolean]>([
    [{}, 'off', false],
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, 'off', false],
    [{ thinking: { type: 'adaptive' } }, undefined, true],
    [{ thinking: { type: 'adaptive', display: 'omitted' } }, undefined, false],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } }, 'xhigh', true],
    [{ thinking: { type: 'enabled', budget_tokens: 1024 } }, 'low', true],
    [{ thinking: { type: 'enabled', budget_tokens: 8192 } }, 'medium', true],
    [{ thinking: { type: 'enabled', budget_tokens: 31_999 } }, 'high', true],
    [{ thinking: { type: 'enabled', budget_tokens: 60_000 } }, 'max', true],
  ])('thinking: %j is effort %s, shown: %s', (body, reasoning, includeReasoning) => {
    expect(parse(body).chat).toMatchObject({ reasoning, includeReasoning, effortMatch: 'nearest' })
  })
})

describe('X-Service-Reasoning beside an effort of the body', () => {
  const withHeader = (body: object) => {
    const headers = new Headers({ 'x-service-reasoning': 'high' })
    return withHeaderMembers(parse(body).chat, headers)
  }

  test.each<[string, object]>([
    ['thinking', { thinking: { type: 'disabled' } }],
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
    ['output_config.effort', { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }],
  ])('another effort is refused by the name of the member that was sent: %s', (member, body) => {
    const refused = refusalOf(() => withHeader(body))
    expect(refused).toEqual([
      'invalid_request_error',
      member,
      `The header X-Service-Reasoning and "${member}" of the body say different things.`,
    ])
  })

  test.each<[object]>([
    [{}],
    [{ thinking: { type: 'adaptive' } }],
    [{ thinking: { type: 'enabled', budget_tokens: 31_999 } }],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }],
  ])('beside %j it is the effort', (body) => {
    expect(withHeader(body)).toMatchObject({ reasoning: 'high', effortMatch: 'exact' })
  })
})

describe('what has no meaning here is named, and never forwarded', () => {
  test.each(MESSAGES_MEMBERS.filter(({ becomes }) => becomes === 'dropped'))(
    'the table says so of $member',
    ({ member }) => {
      expect(parse({ [member]: { x: 'SECRET' } }).dropped).toEqual([member])
      expect(JSON.stringify(chatOf({ [member]: { x: 'SECRET' } }))).not.toContain('SECRET')
    },
  )

  test.each(MESSAGES_BLOCKS.filter(({ becomes }) => becomes === 'dropped'))(
    'the table says so of blocks of type $member',
    ({ member }) => {
      const assistant = { role: 'assistant', content: [{ type: member, data: 'SECRET' }] }
      expect(parse({ messages: [user, assistant] }).dropped).toEqual([`messages.${member}`])
      expect(JSON.stringify(messagesOf(user, assistant))).not.toContain('SECRET')
    },
  )

  test('tools of the vendor, parts of output_config and unknown members', () => {
    const body = {
      tools: [{ type: 'bash_20250124', name: 'bash' }],
      output_config: { task_budget: 5 },
      invented: 1,
    }
    expect(parse(body).dropped).toEqual([
      'invented',
      'tools.bash_20250124',
      'output_config.task_budget',
    ])
  })

  const effort = { output_config: { effort: 'high', task_budget: null } }

  test.each([{}, { thinking: { type: 'disabled' } }])(
    'an effort beside %j, where there is no thinking that it could be of',
    (thinking) => {
      expect(parse({ ...effort, ...thinking }).dropped).toEqual(['output_config.effort'])
    },
  )

  test('no effort that has an effect, and no member that is null', () => {
    const thinking = { type: 'enabled', budget_tokens: 1024 }
    expect(parse({ ...effort, thinking })).toMatchObject({
      dropped: [],
      chat: { reasoning: 'high' },
    })
  })
})

describe('refused', () => {
  const content = (...blocks: object[]) => ({ messages: [{ role: 'user', content: blocks }] })

  test.each<[string, string, object]>([
    ['missing_field', 'model', { model: null }],
    ['missing_field', 'messages', { messages: null }],
    ['invalid_request_error', 'messages', { messages: [] }],
    ['invalid_request_error', 'messages[0]', { messages: [{ role: 'critic', content: 'SECRET' }] }],
    ['invalid_request_error', 'messages[0].content[0].type', content({ type: 'invented' })],
    ['invalid_request_error', 'messages[0].content[0].type', content(use)],
    [
      'invalid_request_error',
      'messages[0].content[0].tool_use_id',
      content({ type: 'tool_result', tool_use_id: 'x' }),
    ],
    [
      'invalid_request_error',
      'messages[0].content[0]',
      content({ type: 'image', source: { type: 'file', file_id: 'SECRET' } }),
    ],
    [
      'invalid_request_error',
      'messages[0].content[0]',
      content({ type: 'document', source: { type: 'url', url: 'SECRET' } }),
    ],
    ['invalid_request_error', 'thread', { thread: { id: 'SECRET' } }],
    ['invalid_request_error', 'thinking', { thinking: { type: 'SECRET' } }],
    [
      'invalid_request_error',
      'output_config.effort',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'SECRET' } },
    ],
    ['invalid_request_error', 'stop_sequences', { stop_sequences: 'SECRET' }],
    [
      'invalid_request_error',
      'tool_choice',
      { tools: [{ name: 'f' }], tool_choice: { type: 'tool', name: 'SECRET' } },
    ],
    ['invalid_request_error', 'tools', { tools: [{ input_schema: {} }] }],
  ])('%s of %s: %j', (code, param, body) => {
    const refusal = refusalOf(body)
    expect(refusal.slice(0, 2)).toEqual([code, param])
    expect(refusal[2]).not.toContain('SECRET')
  })

  test.each<[string, object, string]>([
    [
      'system',
      {
        system: [
          { type: 'text', text: 'a' },
          { type: 'image', source: data },
        ],
      },
      'system[1]',
    ],
    [
      'a system message',
      { messages: [{ role: 'system', content: [{ type: 'document', source: data }] }, user] },
      'messages[0].content[0]',
    ],
  ])('an image or a file in %s, which would be lost', (_, body, at) => {
    const message = `"${at}.type": images and files may only be in messages of the user.`
    expect(refusalOf(body)).toEqual(['invalid_request_error', `${at}.type`, message])
  })
})

test('the tables name each member once', () => {
  for (const table of [MESSAGES_MEMBERS, MESSAGES_BLOCKS]) {
    expect(new Set(table.map(({ member }) => member)).size).toBe(table.length)
  }
})
