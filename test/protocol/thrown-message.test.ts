import { expect, test } from 'vitest'
import { messageOfThrown } from '../../src/protocol/thrown-message.ts'

test('the message of an error is told as it is', () => {
  expect(messageOfThrown(new RangeError('out of range'))).toBe('out of range')
})

test.each(['a secret', { message: 'a secret' }, undefined])(
  'what is thrown and no error is not quoted: %s',
  (thrown) => {
    expect(messageOfThrown(thrown)).toBe('unknown error')
  },
)
