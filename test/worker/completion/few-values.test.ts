import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { OF_EMBEDDINGS, requireFewValues } from '../../../src/worker/completion/few-values.ts'
import { parseBodyObject } from '../../../src/worker/completion/member-rules.ts'
import { refusalOf } from '../../support/refusal.ts'

const TOO_MANY = {
  code: 'request_too_large',
  message:
    'The request body has more than 131,072 objects and lists, 524,288 other values, or 50,000 different names of members.',
}

const listOf = (count: number, element: (index: number) => string) =>
  `[${Array.from({ length: count }, (_, index) => element(index)).join(',')}]`

/** Names made so that FNV-1a, folded to 16 bits or to some more, takes many of them for the same one. */
function namesOfFewHashes(count: number): string[] {
  const names: string[] = []
  for (let index = 0; names.length < count; index++) {
    const name = `n${index}`
    let hash = 0x811c9dc5
    for (let at = 0; at < name.length; at++) {
      hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
    }
    if (((hash ^ (hash >>> 16)) & 0xffff) < 0x800) names.push(name)
  }
  return names
}

const bodyOf = (input: string) => utf8(`{"input":${input}}`)

/** What honest clients send at the most: a body of 10 MiB, or more tokens than the context of a model has. */
describe('a large body of an honest client is read', () => {
  const text = (length: number) => 'some text'.repeat(length / 9)
  const times = <T>(count: number, one: (index: number) => T) =>
    Array.from({ length: count }, (_, index) => one(index))

  it.each([
    ['a conversation', times(40_000, () => ({ role: 'user', content: text(200) }))],
    [
      'the history of an agent at /v1/messages',
      times(4000, (index) => [
        {
          role: 'assistant',
          content: [
            { type: 'text', text: text(90) },
            {
              type: 'tool_use',
              id: `toolu_${index}`,
              name: 'Read',
              input: { path: 'a', limit: 9 },
            },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: `toolu_${index}`,
              content: [{ type: 'text', text: text(2000) }],
            },
          ],
        },
      ]).flat(),
    ],
    [
      'the history of an agent at /v1/responses, with short results',
      times(12_000, (index) => [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: text(180) }], content: null },
        { type: 'function_call', call_id: `${index}`, name: 'a', arguments: '{}', status: 'done' },
        { type: 'function_call_output', call_id: `${index}`, output: text(180) },
      ]).flat(),
    ],
    [
      '1,024 tools with schemas',
      times(1024, (index) => ({
        name: `tool${index}`,
        description: text(900),
        input_schema: Object.fromEntries(
          times(16, (at) => [
            `p${at}`,
            { type: 'string', description: text(90), enum: ['a', 'b'] },
          ]),
        ),
      })),
    ],
  ])('%s', (_, value) => {
    const body = utf8(JSON.stringify({ input: value }))
    expect(body.length).toBeLessThan(10 * 1024 * 1024)
    expect(parseBodyObject(body)).toEqual({ input: value })
  })

  it('as many token ids as 10 MiB have, for embeddings', () => {
    const ids = listOf(2_000_000, () => '1234')
    expect(parseBodyObject(bodyOf(ids), OF_EMBEDDINGS)).toHaveProperty('input.length', 2_000_000)
  })
})

describe('a body that is parsed in one go', () => {
  it.each([
    ['lists', listOf(110_000, () => '[]')],
    ['objects', listOf(110_000, () => '{"a":0}')],
    ['numbers', listOf(530_000, () => '0')],
    ['names', `{${listOf(60_000, (index) => `"name${index}":0`).slice(1, -1)}}`],
    ['names in many objects', listOf(60_000, (index) => `{ "${index}" : 0 }`)],
    [
      'names that a hash takes for few',
      `{${namesOfFewHashes(60_000)
        .map((name) => `"${name}":0`)
        .join(',')}}`,
    ],
    ['long names', listOf(60_000, (index) => `{"${'x'.repeat(64)}${index}":0}`)],
  ])('is refused with too many %s', (_, json) => {
    expect(refusalOf(() => requireFewValues(utf8(json)))).toEqual(TOO_MANY)
    expect(refusalOf(() => parseBodyObject(bodyOf(json)))).toEqual(TOO_MANY)
  })

  it.each([
    ['text that looks like values', JSON.stringify('[],{"a":1}'.repeat(900_000))],
    ['messages', listOf(85_000, () => '{"role":"user","content":"Hi \\" [{"}')],
    ['numbers', listOf(520_000, () => '5')],
    ['names', `{${listOf(49_000, (index) => `"name${index}":0`).slice(1, -1)}}`],
    [
      'names that begin alike',
      listOf(60_000, (index) => `{"a":0,"ab":0,"a\\"b":0,"${'a'.repeat(index % 60)}":0}`),
    ],
  ])('is read when it is one of many %s', (_, json) => {
    expect(parseBodyObject(bodyOf(json))).toHaveProperty('input')
  })

  it('is refused by the limit of its endpoint', () => {
    expect(
      refusalOf(() => parseBodyObject(bodyOf(listOf(2_100_000, () => '0')), OF_EMBEDDINGS)),
    ).toEqual({
      ...TOO_MANY,
      message:
        'The request body has more than 524,288 objects and lists, 2,097,152 other values, or 50,000 different names of members.',
    })
  })

  it.each([
    ['a quote', '"'],
    ['backslashes', '\\'.repeat(20)],
    ['backslashes and a quote', `${'\\'.repeat(19)}"`],
  ])('is read when a long string has %s far behind its beginning', (_, inside) => {
    for (let before = 24; before < 36; before++) {
      const string = JSON.stringify(`${'x'.repeat(before)}${inside}[],[]`)
      const many = `${string},`.repeat(Math.ceil((300 * 1024) / string.length))
      expect(parseBodyObject(bodyOf(`[${many}0]`))).toHaveProperty('input')
    }
  })

  it('is refused as JSON that is none, however long', () => {
    expect(refusalOf(() => parseBodyObject(bodyOf(`${listOf(90_000, () => '[]')}}"`)))).toEqual({
      code: 'invalid_request_error',
      message: 'The request body is not valid JSON.',
    })
  })
})
