import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { requireFewValues } from '../../../src/worker/completion/few-values.ts'
import { parseBodyObject } from '../../../src/worker/completion/member-rules.ts'
import { refusalOf } from '../../support/refusal.ts'

const TOO_MANY = {
  code: 'request_too_large',
  message:
    'The request body has more than 800,000 objects and lists, four million other values, or 50,000 different names of members.',
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

describe('a body that is parsed in one go', () => {
  it.each([
    ['lists', listOf(900_000, () => '[]')],
    ['objects', listOf(900_000, () => '{"a":0}')],
    ['numbers', listOf(4_300_000, () => '0')],
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
    ['messages', listOf(100_000, () => '{"role":"user","content":"Hi \\" [{"}')],
    ['numbers', listOf(3_900_000, () => '5')],
    ['names', `{${listOf(49_000, (index) => `"name${index}":0`).slice(1, -1)}}`],
    [
      'names that begin alike',
      listOf(90_000, (index) => `{"a":0,"ab":0,"a\\"b":0,"${'a'.repeat(index % 60)}":0}`),
    ],
  ])('is read when it is one of many %s', (_, json) => {
    expect(parseBodyObject(bodyOf(json))).toHaveProperty('input')
  })

  it('is refused as JSON that is none, however long', () => {
    expect(refusalOf(() => parseBodyObject(bodyOf(`${listOf(90_000, () => '[]')}}"`)))).toEqual({
      code: 'invalid_request_error',
      message: 'The request body is not valid JSON.',
    })
  })
})
