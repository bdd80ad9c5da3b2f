import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { parseChatRequest } from '../../../src/worker/completion/request.ts'
import { checkReasoningMembers } from '../../../src/worker/completion/reasoning-members.ts'
import { chatRequest, chatText } from '../../support/chat-fixtures.ts'
import { refusalOf } from '../../support/refusal.ts'

const invalid = (message: string, param?: string) => ({
  code: 'invalid_request_error',
  message,
  ...(param === undefined ? {} : { param }),
})

describe('parseChatRequest', () => {
  it('fills in the defaults', () => {
    expect(chatRequest(chatText())).toMatchObject({
      model: 'glm-5',
      stream: false,
      includeUsage: false,
      includeReasoning: true,
      reasoning: undefined,
      effortMatch: 'exact',
      effortMember: undefined,
      reasoningHiddenByDefault: false,
      reasoningMembers: [],
      failover: [],
      temperature: undefined,
      maxTokens: undefined,
      choices: 1,
    })
  })

  it('reads every member it knows', () => {
    const text = chatText(
      '"stream":true,"stream_options":{"include_usage":true},"include_reasoning":false,"n":2,' +
        '"reasoning":"none","failover":["a","eu/b","p/c","eu/p/d","e"],"temperature":0.7,"max_tokens":100',
    )
    expect(chatRequest(text)).toMatchObject({
      stream: true,
      includeUsage: true,
      includeReasoning: false,
      reasoning: 'off',
      reasoningMembers: ['reasoning'],
      failover: ['a', 'eu/b', 'p/c', 'eu/p/d', 'e'],
      temperature: 0.7,
      maxTokens: 100,
      choices: 2,
    })
  })

  it.each(['model', 'failover', 'stream', 'n', 'reasoning', 'stream_options'])(
    'does not parse a long %s',
    (name) => {
      const long = JSON.stringify(Array.from({ length: 32_768 }, () => []))
      const read = () =>
        chatRequest({ model: 'm', messages: [{ role: 'user' }], [name]: JSON.parse(long) })
      return expect(refusalOf(read)).toEqual(invalid(`"${name}" is too long.`, name))
    },
  )

  it.each([
    'stream',
    'temperature',
    'max_tokens',
    'max_completion_tokens',
    'failover',
    'include_reasoning',
    'reasoning',
    'reasoning_effort',
    'chat_template_kwargs',
    'stream_options',
    'n',
  ])('takes null as %s for its absence', (name) => {
    const { bytes: _, members: __, ...read } = chatRequest(chatText(`"${name}":null`))
    const { bytes: ___, members: ____, ...plain } = chatRequest(chatText())
    expect(read).toEqual(plain)
  })

  it('counts the last of repeated members, however their names are spelled', () => {
    const request = chatRequest(
      '{"model":1,"messages":3,"stream":"x","mod\\u0065l":"b","stream":true,"messages":[{"role":"user"}]}',
    )
    expect(request).toMatchObject({ model: 'b', stream: true, messages: { count: 1 } })
    expect(refusalOf(() => chatRequest(chatText('"model":null')))).toMatchObject({
      code: 'missing_field',
    })
  })

  it.each([
    ['', 'The request body is not valid JSON: unexpected input at byte 0.'],
    ['{"model":"a"', 'The request body is not valid JSON: unexpected input at byte 12.'],
    [chatText().concat('x'), 'The request body is not valid JSON: unexpected input at byte 64.'],
    ['{"a":['.repeat(300), 'The request body is not valid JSON: nested deeper than 512 levels.'],
    ['[]', 'The request body must be a JSON object.'],
    ['"glm-5"', 'The request body must be a JSON object.'],
    ['null', 'The request body must be a JSON object.'],
  ])('refuses the body %#', (text, message) => {
    expect(refusalOf(() => chatRequest(text))).toEqual(invalid(message))
  })

  it('refuses malformed UTF-8', () => {
    const bytes = utf8(chatText())
    bytes[bytes.indexOf(0x48)] = 0xff
    expect(refusalOf(() => parseChatRequest(bytes))).toEqual(
      invalid('The request body is not valid JSON: unexpected input at byte 55.'),
    )
  })

  it.each([
    ['{"messages":[{"role":"user"}]}', 'model'],
    ['{"model":null,"messages":[{"role":"user"}]}', 'model'],
    ['{"model":"","messages":[{"role":"user"}]}', 'model'],
    ['{"model":"a"}', 'messages'],
    ['{"model":"a","messages":null}', 'messages'],
    ['{}', 'model'],
  ])('tells what is missing from %s', (text, param) => {
    expect(refusalOf(() => chatRequest(text))).toEqual({
      code: 'missing_field',
      message: `"${param}" is missing.`,
      param,
    })
  })

  it.each([
    ['{}', '"messages" must be an array.'],
    ['"hi"', '"messages" must be an array.'],
    ['[]', '"messages" must not be empty.'],
    ['["hi"]', '"messages[0]" must be an object.'],
    ['[{"role":"user"},[]]', '"messages[1]" must be an object.'],
    ['[{"content":"hi"}]', '"messages[0]" must have a string as "role".'],
    ['[{"role":1,"content":"hi"}]', '"messages[0]" must have a string as "role".'],
    ['[{"role":"user","role":null}]', '"messages[0]" must have a string as "role".'],
    [
      '[{"role":"user","content":{}}]',
      '"messages[0]" must have a string, an array or null as "content".',
    ],
    [
      '[{"role":"user","content":7},1]',
      '"messages[0]" must have a string, an array or null as "content".',
    ],
  ])('refuses the messages %s', (messages, message) => {
    const text = `{"model":"a","messages":${messages}}`
    expect(refusalOf(() => chatRequest(text))).toEqual(invalid(message, 'messages'))
  })

  it.each([
    '[{"role":"user","content":"hi"}]',
    '[{"role":"user","content":[]}]',
    '[{"role":"assistant","content":null,"tool_calls":[]}]',
    '[{"role":"tool","tool_call_id":"x"}]',
    '[{"role":"anything","content":[1,"x",{"type":"new"}]}]',
  ])('leaves to the provider whether it likes %s', (messages) => {
    expect(chatRequest(`{"model":"a","messages":${messages}}`).messages.count).toBe(1)
  })

  const TOKENS = 'must be a whole number of at least 1.'
  const TEMPERATURE = '"temperature" must be a number from 0 to 2.'
  const FAILOVER = '"failover" must be an array of strings.'
  it.each([
    ['"model":7', 'model', '"model" must be a string.'],
    ['"stream":"true"', 'stream', '"stream" must be true or false.'],
    ['"stream":1', 'stream', '"stream" must be true or false.'],
    ['"temperature":"1"', 'temperature', TEMPERATURE],
    ['"temperature":-0.01', 'temperature', TEMPERATURE],
    ['"temperature":2.01', 'temperature', TEMPERATURE],
    ['"temperature":1e999', 'temperature', TEMPERATURE],
    ['"max_tokens":0', 'max_tokens', `"max_tokens" ${TOKENS}`],
    ['"max_tokens":-5', 'max_tokens', `"max_tokens" ${TOKENS}`],
    ['"max_tokens":1.5', 'max_tokens', `"max_tokens" ${TOKENS}`],
    ['"max_tokens":"10"', 'max_tokens', `"max_tokens" ${TOKENS}`],
    ['"max_completion_tokens":0', 'max_completion_tokens', `"max_completion_tokens" ${TOKENS}`],
    [
      '"max_tokens":10,"max_completion_tokens":11',
      'max_completion_tokens',
      '"max_completion_tokens" must not differ from "max_tokens".',
    ],
    ['"failover":"a"', 'failover', FAILOVER],
    ['"failover":["a",1]', 'failover', FAILOVER],
    ['"failover":[null]', 'failover', FAILOVER],
    ['"failover":["1","2","3","4","5","6"]', 'failover', '"failover" must have at most 5 entries.'],
    ['"include_reasoning":"no"', 'include_reasoning', '"include_reasoning" must be true or false.'],
    ['"stream_options":[]', 'stream_options', '"stream_options" must be an object.'],
    [
      '"stream_options":{"include_usage":1}',
      'stream_options',
      '"stream_options" must have true or false as "include_usage".',
    ],
  ])('refuses %s', (member, param, message) => {
    expect(refusalOf(() => chatRequest(chatText(member)))).toEqual(invalid(message, param))
  })

  it.each([
    ['"temperature":0', { temperature: 0 }],
    ['"temperature":2.0', { temperature: 2 }],
    ['"max_tokens":1e3', { maxTokens: 1000 }],
    ['"max_completion_tokens":7', { maxTokens: 7 }],
    ['"max_tokens":7,"max_completion_tokens":7', { maxTokens: 7 }],
    ['"max_tokens":null,"max_completion_tokens":7', { maxTokens: 7 }],
    ['"failover":[]', { failover: [] }],
    ['"stream_options":{"include_usage":null}', { includeUsage: false }],
    ['"n":"3"', { choices: 3 }],
    ['"n":0', { choices: 1 }],
    ['"n":{}', { choices: 1 }],
    ['"n":1e999', { choices: 16_384 }],
    ['"n":"1_000"', { choices: 1000 }],
    ['"n":" +7 "', { choices: 7 }],
    ['"n":"1,000"', { choices: 16_384 }],
    ['"n":"\u0661\u0660"', { choices: 16_384 }],
    ['"n":"many"', { choices: 1 }],
  ])('takes %s', (member, expected) => {
    expect(chatRequest(chatText(member))).toMatchObject(expected)
  })

  it.each([
    ['functions', '[]', 'tools'],
    ['function_call', '"auto"', 'tool_choice'],
  ])('refuses %s, which would otherwise be dropped without a word', (name, value, successor) => {
    expect(refusalOf(() => chatRequest(chatText(`"${name}":${value}`)))).toEqual(
      invalid(`"${name}": not supported; use "${successor}".`, name),
    )
    expect(() => chatRequest(chatText(`"${name}":null`))).not.toThrow()
  })

  it('lets unknown members of stream_options pass', () => {
    const options = '"stream":true,"stream_options":{"continuous_usage_stats":true}'
    expect(chatRequest(chatText(options))).toMatchObject({ stream: true, includeUsage: false })
  })

  it('notes where unknown members are, but not thousands of them', () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => `"m${at}":0`).join(',')
    expect(chatRequest(chatText(many(256))).otherMembers.size).toBe(256)
    expect(refusalOf(() => chatRequest(chatText(many(257))))).toMatchObject({
      code: 'invalid_request_error',
      message: 'The request body has too many members that the router does not know.',
    })
  })

  it('refuses a list of a million failovers unread', () => {
    const text = chatText(`"failover":[${'1,'.repeat(1_000_000)}1]`)
    expect(refusalOf(() => chatRequest(text))).toEqual(
      invalid('"failover" is too long.', 'failover'),
    )
    const six = chatText('"failover":[1,1,1,1,1,1]')
    expect(refusalOf(() => chatRequest(six))).toEqual(
      invalid('"failover" must have at most 5 entries.', 'failover'),
    )
  })

  it('never quotes the body in a message', () => {
    const secret = 'SECRET'
    const members = [
      'stream',
      'temperature',
      'max_tokens',
      'failover',
      'stream_options',
      'reasoning',
    ]
    for (const member of members) {
      const act = () => checkReasoningMembers(chatRequest(chatText(`"${member}":"${secret}"`)))
      expect(refusalOf(act).message).not.toContain(secret)
    }
  })
})

describe('checkReasoningMembers', () => {
  it.each(['off', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])(
    'takes "%s"',
    (effort) => {
      const request = chatRequest(chatText(`"reasoning":"${effort}"`))
      checkReasoningMembers(request)
      expect(request.reasoning).toBe(effort === 'none' ? 'off' : effort)
    },
  )

  const LADDER =
    '"reasoning" must be one of the strings off, minimal, low, medium, high, xhigh, max.'
  it.each([
    ['"reasoning":"huge"', LADDER],
    ['"reasoning":"HIGH"', LADDER],
    ['"reasoning":""', LADDER],
    ['"reasoning":{"effort":"high"}', LADDER],
    ['"reasoning":true', LADDER],
    ['"reasoning_effort":"high"', '"reasoning_effort": not supported; use "reasoning".'],
    [
      '"reasoning":"high","reasoning_effort":"high"',
      '"reasoning_effort": not supported; use "reasoning".',
    ],
    [
      '"chat_template_kwargs":{"enable_thinking":false}',
      '"chat_template_kwargs": not supported; use "reasoning".',
    ],
  ])('refuses %s, but not before the plan is known', (member, message) => {
    const request = chatRequest(chatText(member))
    const [, param] = /^"(\w+)"/.exec(message) ?? []
    expect(refusalOf(() => checkReasoningMembers(request))).toEqual(invalid(message, param))
  })
})
