import { describe, expect, test } from 'vitest'
import { readIdempotencyKey } from '../../../src/worker/idempotency/key-header.ts'
import { refusalOf } from '../../support/refusal.ts'

const read = (value: string) => readIdempotencyKey(new Headers({ 'idempotency-key': value }))

describe('an Idempotency-Key', () => {
  test.each([
    ['"8e03978e-40d5-43dd-bc93-6894a57f9324"', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    [' "a b, c; d" ', 'a b, c; d'],
    [String.raw`"say \"hi\" \\ bye"`, String.raw`say "hi" \ bye`],
    ['stainless-node-retry-1', 'stainless-node-retry-1'],
    [`"${'k'.repeat(255)}"`, 'k'.repeat(255)],
  ])('%s is read with or without quotes', (value, key) => {
    expect(read(value)).toBe(key)
  })

  test('may be absent', () => {
    expect(readIdempotencyKey(new Headers())).toBeUndefined()
  })

  test.each([
    '',
    '""',
    'a b',
    'one, two',
    '"one", "two"',
    '"a";p=1',
    '"open',
    'shut"',
    String.raw`"bad \escape"`,
    'k'.repeat(256),
    '"caf\u00e9"',
    ':AAAA:,',
  ])('is refused as malformed: %s', (value) => {
    expect(refusalOf(() => read(value))).toMatchObject({
      code: 'invalid_parameter',
      param: 'Idempotency-Key',
    })
  })
})
