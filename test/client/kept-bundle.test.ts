import { expect, test } from 'vitest'
import { mayReplace } from '../../src/client/kept-bundle.ts'

test('a stored bundle is replaced by one of its version or a newer one, never by an older one', () => {
  expect(mayReplace(undefined, { version: 1 })).toBe(true)
  expect(mayReplace({ version: 8 }, { version: 7 })).toBe(false)
  expect(mayReplace({ version: 8 }, { version: 8 })).toBe(true)
  expect(mayReplace({ version: 8 }, { version: 9 })).toBe(true)
})
