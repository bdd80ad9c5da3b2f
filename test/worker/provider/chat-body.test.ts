import * as fc from 'fast-check'
import type { RouteConfig } from '../../../src/protocol/config.ts'
import { describe, expect, it } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import type { Effort } from '../../../src/protocol/effort.ts'
import { buildChatBody } from '../../../src/worker/provider/chat-body.ts'
import { PASSED_MEMBERS } from '../../../src/worker/provider/chat-request.ts'
import type { Route } from '../../../src/worker/provider/route.ts'
import { chatRequest, chatRoute, chatText } from '../../support/chat-fixtures.ts'

function built(
  text: string,
  route: Route = chatRoute(),
  effort?: Effort,
  cacheSalt?: string,
): string {
  return fromUtf8(buildChatBody(chatRequest(text), route, effort, cacheSalt))
}

const HELLO = '{"model":"zai-org/GLM-5","messages":[{"role":"user","content":"Hello"}]'

describe('buildChatBody', () => {
  it('sends the model under the provider name for it', () => {
    expect(built(chatText())).toBe(`${HELLO}}`)
  })

  it.each([
    ['an integer beyond 2^53', '"seed":12345678901234567890'],
    ['a trailing zero', '"top_p":0.50'],
    ['an exponent', '"frequency_penalty":1E-2'],
    ['null', '"stop":null'],
    [
      'white space, key order and repeated keys inside',
      '"response_format":{ "b" :1,\n"a":2, "b":3 }',
    ],
    ['escapes and lone surrogates', '"user":"\\u0041\\/\\ud800\\u00e9é"'],
    ['wrong types', '"n":"many"'],
    ['the temperature', '"temperature":0.70'],
  ])('hands on %s byte for byte', (_, member) => {
    expect(built(chatText(member))).toBe(`${HELLO},${member}}`)
  })

  it('hands the messages on byte for byte', () => {
    const messages =
      '[ {"role":"user","content":[{"type":"text","text":"\\ud800"}],"x":1.0} ,\n{"role":"tool"}]'
    expect(built(`{"messages" : ${messages} ,"model":"glm-5"}`)).toContain(
      `"messages":${messages}}`,
    )
  })

  it('leaves unknown, service-only and reasoning members behind', () => {
    const text = chatText(
      '"failover":["x"],"include_reasoning":false,"reasoning":"high","reasoning_effort":"low","service":{},' +
        '"chat_template_kwargs":{},"skip_special_tokens":true,"stream":false,"store":true,"__proto__":1',
    )
    expect(built(text)).toBe(`${HELLO}}`)
  })

  it('sends the last of repeated members once', () => {
    expect(built(chatText('"seed":1,"top_p":1,"s\\u0065ed":2'))).toBe(
      `${HELLO},"top_p":1,"seed":2}`,
    )
  })

  it.each([
    '"max_tokens":1e2',
    '"max_completion_tokens":1e2',
    '"max_tokens":null,"max_completion_tokens":1e2',
  ])('sends %s as max_tokens', (member) => {
    expect(built(chatText(member))).toBe(`${HELLO},"max_tokens":1e2}`)
  })

  it('sends one cap where both names were used', () => {
    expect(built(chatText('"max_tokens":5,"max_completion_tokens":5'))).toBe(
      `${HELLO},"max_tokens":5}`,
    )
  })

  it('sends what engines of the format share as it was written, and what the route names instead', () => {
    const members = '"logit_bias":{"50":-1.0},"min_p":0.10,"best_of":2,"vendor":[ 1 ]'
    expect(built(chatText(members))).toBe(`${HELLO},"logit_bias":{"50":-1.0},"min_p":0.10}`)
    const route = chatRoute({ forward: ['vendor', 'best_of'] })
    expect(built(chatText(members), route)).toBe(`${HELLO},"vendor":[ 1 ],"best_of":2}`)
  })

  it('lets no forwarded member stand against the effort, the salt or what OCR is sent', () => {
    const route = chatRoute({
      forward: ['k', 'skip_special_tokens'],
      ocr: true,
      reasoning: { default_effort: 'high', efforts: { high: { k: 1 } } },
    })
    const sent: unknown = JSON.parse(
      built(chatText('"k":2,"skip_special_tokens":true'), route, 'high'),
    )
    expect(sent).toMatchObject({ k: 1, skip_special_tokens: false })
  })

  it.each(['"temperature":null', '"max_tokens":null', '"stream_options":null'])(
    'leaves out %s',
    (member) => {
      expect(built(chatText(member))).toBe(`${HELLO}}`)
    },
  )

  it('hands stream_options on as they are outside streams', () => {
    const member = '"stream_options":{ "include_usage" :false}'
    expect(built(chatText(member))).toBe(`${HELLO},${member}}`)
  })

  it.each([
    ['no options', '', '{"include_usage":true}'],
    ['null', ',"stream_options":null', '{"include_usage":true}'],
    ['empty options', ',"stream_options":{ }', '{"include_usage":true}'],
    ['usage declined', ',"stream_options":{"include_usage":false}', '{"include_usage":true}'],
    [
      'other options',
      ',"stream_options":{"a" : 0.50,"include_usage":null,"b":[1, 2],"include\\u005fusage":false}',
      '{"a" : 0.50,"b":[1, 2],"include_usage":true}',
    ],
    [
      'counts on every chunk, which are not requested',
      ',"stream_options":{"continuous_usage_stats":true,"a":1}',
      '{"a":1,"include_usage":true}',
    ],
  ])('asks for usage in a stream with %s', (_, options, expected) => {
    expect(built(chatText(`"stream":true${options}`))).toBe(
      `${HELLO},"stream":true,"stream_options":${expected}}`,
    )
  })
})

describe('buildChatBody on a route with settings', () => {
  const reasoning: RouteConfig['reasoning'] = {
    default_effort: 'low',
    efforts: {
      off: { chat_template_kwargs: { enable_thinking: false } },
      high: { reasoning_effort: 'high', top_p: 0.9, model: 'x', messages: [], stream: false },
    },
  }

  it('merges the patch of the effort', () => {
    expect(built(chatText(), chatRoute({ reasoning }), 'off')).toBe(
      `${HELLO},"chat_template_kwargs":{"enable_thinking":false}}`,
    )
  })

  it('lets a patch win over the caller, but not over the router', () => {
    expect(built(chatText('"top_p":0.10,"stream":true'), chatRoute({ reasoning }), 'high')).toBe(
      `${HELLO},"top_p":0.9,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true}}`,
    )
  })

  it.each(['low', undefined] as const)(
    'adds nothing for the effort %s without a patch',
    (effort) => {
      expect(built(chatText(), chatRoute({ reasoning }), effort)).toBe(`${HELLO}}`)
    },
  )

  it('sends the cache salt under the name the route gives', () => {
    expect(
      built(chatText(), chatRoute({ cache_salt_field: 'cache_salt' }), undefined, 'pepper'),
    ).toBe(`${HELLO},"cache_salt":"pepper"}`)
    expect(built(chatText('"cache_salt":"mine"'), chatRoute(), undefined, 'pepper')).toBe(
      `${HELLO}}`,
    )
  })

  it('lets no caller choose the salt, even where it has the name of a forwarded member', () => {
    const route = chatRoute({ cache_salt_field: 'user' })
    expect(built(chatText('"user":"mine"'), route, undefined, 'pepper')).toBe(
      `${HELLO},"user":"pepper"}`,
    )
  })

  it.each(['', '"temperature":0.0,"skip_special_tokens":false'])(
    'sends what OCR models need once, given {%s}',
    (members) => {
      expect(built(chatText(members), chatRoute({ ocr: true }))).toBe(
        `${HELLO},"temperature":0,"skip_special_tokens":false}`,
      )
    },
  )
})

const withHistory = (message: string) =>
  `{"model":"glm-5","messages":[{"role":"user"}, ${message} ,{"role":"user","reasoning":"mine"}]}`
const sentHistory = (message: string) =>
  `{"model":"zai-org/GLM-5","messages":[{"role":"user"}, ${message} ,{"role":"user","reasoning":"mine"}]}`
const routeNaming = (history_field?: string) =>
  chatRoute({
    reasoning: {
      default_effort: 'off',
      efforts: {},
      ...(history_field === undefined ? {} : { history_field }),
    },
  })

describe('buildChatBody with earlier reasoning', () => {
  it.each([
    [
      '{"role":"assistant","reasoning":"a\\u0062c","content":"x"}',
      '{"role":"assistant","R":"a\\u0062c","content":"x"}',
    ],
    ['{"reasoning_content" : "abc" , "role" : "assistant"}', '{"R":"abc","role" : "assistant"}'],
    ['{"role":"assistant","r\\u0065asoning":"abc"}', '{"role":"assistant","R":"abc"}'],
    [
      '{"role":"assistant","reasoning":"a","reasoning_content":"b"}',
      '{"role":"assistant","R":"b"}',
    ],
    [
      '{"role":"assistant","reasoning_content":"b","reasoning":"a"}',
      '{"role":"assistant","R":"a"}',
    ],
    ['{"role":"assistant","reasoning":"a","reasoning":"b"}', '{"role":"assistant","R":"b"}'],
    [
      '{"role":"assistant","reasoning":"a","reasoning_content":null}',
      '{"role":"assistant","R":"a"}',
    ],
    ['{"role":"assistant","reasoning":null,"content":"x"}', '{"role":"assistant","content":"x"}'],
    [
      '{"role":"user","role":"assistant","reasoning":{"deep":[1, 2.0]}}',
      '{"role":"user","role":"assistant","R":{"deep":[1, 2.0]}}',
    ],
  ])('sends %s under the name the route knows', (message, expected) => {
    for (const field of ['reasoning', 'reasoning_content', 'thinking']) {
      expect(built(withHistory(message.replace('"R"', `"${field}"`)), routeNaming(field))).toBe(
        sentHistory(expected.replace('"R"', `"${field}"`)),
      )
    }
  })

  it('lets the text replace a member that already has the name', () => {
    const message = '{"role":"assistant","reasoning":"a","thinking":"other"}'
    expect(built(withHistory(message), routeNaming('thinking'))).toBe(
      sentHistory('{"role":"assistant","thinking":"a"}'),
    )
  })

  it('hands on every other member of a message that has hundreds of thousands of them', () => {
    const many = '"":0,'.repeat(500_000)
    const message = (name: string) => `{"role":"assistant",${many}"${name}":"a",${many}"c":1}`
    const text = withHistory(message('reasoning'))
    expect(built(text, routeNaming('thinking')) === sentHistory(message('thinking'))).toBe(true)
  })

  it.each([
    ['{"role":"assistant","reasoning":"a","content":"x"}', '{"role":"assistant","content":"x"}'],
    ['{"reasoning":"a","role":"assistant","reasoning_content":"b"}', '{"role":"assistant"}'],
  ])('removes it from %s where the route names no field', (message, expected) => {
    expect(built(withHistory(message), routeNaming())).toBe(sentHistory(expected))
    expect(built(withHistory(message))).toBe(sentHistory(expected))
  })
})

describe('buildChatBody on any request', () => {
  const roles = fc.constantFrom('system', 'user', 'assistant', 'tool')
  const message = fc.record(
    {
      role: roles,
      content: fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.constant(null),
        fc.array(fc.jsonValue()),
      ),
      reasoning: fc.oneof(fc.string(), fc.constant(null)),
      reasoning_content: fc.string(),
      tool_calls: fc.array(fc.jsonValue()),
    },
    { requiredKeys: ['role'] },
  )
  const passed = Object.fromEntries(PASSED_MEMBERS.map((name) => [name, fc.jsonValue()]))
  const body = fc.record(
    {
      model: fc.string({ minLength: 1 }),
      messages: fc.array(message, { minLength: 1, maxLength: 6 }),
      ...passed,
      stream: fc.boolean(),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      max_tokens: fc.integer({ min: 1 }),
      stream_options: fc.record(
        { include_usage: fc.boolean(), other: fc.jsonValue() },
        { requiredKeys: [] },
      ),
      reasoning: fc.jsonValue(),
      service: fc.jsonValue(),
      unknown: fc.jsonValue(),
      min_p: fc.jsonValue(),
    },
    { requiredKeys: ['model', 'messages'] },
  )

  it('parses to what parsing and printing would have given', () => {
    const route = chatRoute({
      reasoning: {
        default_effort: 'off',
        efforts: { high: { k: [1] } },
        history_field: 'reasoning',
      },
      cache_salt_field: 'salt',
    })
    const indent = fc.constantFrom(undefined, 1, '\t')
    fc.assert(
      fc.property(body, indent, (value, space) => {
        const text = JSON.stringify(value, null, space)
        const sent: unknown = JSON.parse(built(text, route, 'high', 's'))
        expect(sent).toEqual(expectedOf(JSON.parse(text)))
      }),
    )
  })
})

interface Sent {
  readonly messages: Record<string, unknown>[]
  readonly stream?: boolean
  readonly stream_options?: object
  readonly [name: string]: unknown
}

/** The same rules once more, on values instead of bytes. */
function expectedOf(value: Sent): Record<string, unknown> {
  const kept = [...PASSED_MEMBERS, 'min_p', 'temperature', 'max_tokens', 'stream_options'].filter(
    (name) => name in value,
  )
  return {
    ...Object.fromEntries(kept.map((name) => [name, value[name]])),
    model: 'zai-org/GLM-5',
    messages: value.messages.map(expectedMessage),
    ...(value.stream === true
      ? { stream: true, stream_options: { ...value.stream_options, include_usage: true } }
      : {}),
    k: [1],
    salt: 's',
  }
}

function expectedMessage(message: Record<string, unknown>): Record<string, unknown> {
  if (message['role'] !== 'assistant') return message
  const { reasoning: _, reasoning_content: __, ...rest } = message
  const texts = Object.entries(message).filter(
    ([name, value]) => /^reasoning(_content)?$/.test(name) && value !== null,
  )
  const last = texts.at(-1)
  return last === undefined ? rest : { ...rest, reasoning: last[1] }
}
