import { describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { withExactIntegers } from '../../../src/worker/completion/schema-members.ts'

describe('members of a body that hold schemas', () => {
  const exact = (body: string, names: readonly string[]) =>
    JSON.stringify(withExactIntegers(JSON.parse(body), utf8(body), names))

  test('have the integers of the body, of a repeated member those of the last one, whatever its name is written like', () => {
    const a = '{"deep":[{"most":9223372036854775807,"least":-9223372036854775808}]}'
    expect(exact(`{"a":[12345678901234567891],"\\u0061":${a},"b":"x"}`, ['a'])).toBe(
      `{"a":${a},"b":"x"}`,
    )
  })

  test('are left as they were parsed where they are not named, and where they are one number', () => {
    const body = '{"a":[12345678901234567891],"b":12345678901234567891}'
    expect(exact(body, ['b', 'c'])).toBe('{"a":[12345678901234567000],"b":12345678901234567000}')
  })
})
