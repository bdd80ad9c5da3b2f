import { expect, test } from 'vitest'
import { isBearerToken } from '../../src/protocol/bearer-token.ts'

test.each(['a', 'cmra_x_y', 'k-1.2~3+4/5==', '!"#'])('%j can be a bearer token', (text) => {
  expect(isBearerToken(text)).toBe(true)
})

test.each(['', 'two words', ' a', 'a\n', 'a\tb', 'schlüssel', 'a\u0000', 'a\u007f'])(
  '%j can be no bearer token: no request could have it',
  (text) => {
    expect(isBearerToken(text)).toBe(false)
  },
)
