import { expect, test } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { Refusals } from '../../../src/worker/limits/refusals.ts'

const refused = () => new ApiError('rate_limit_exceeded', 'Again.', { retryAfter: 1 })

test('a refusal holds for its time, for its name alone', () => {
  const clock = { now: 0 }
  const refusals = new Refusals(() => clock.now)
  refusals.remember('a', 100, refused)
  expect(() => refusals.check('a')).toThrow('Again.')
  expect(() => refusals.check('b')).not.toThrow()
  clock.now = 99
  expect(() => refusals.check('a')).toThrow(
    expect.objectContaining({ code: 'rate_limit_exceeded' }),
  )
  clock.now = 100
  expect(() => refusals.check('a')).not.toThrow()
})

test('a clock that is set back ends a refusal', () => {
  const clock = { now: 3_600_000 }
  const refusals = new Refusals(() => clock.now)
  refusals.remember('a', 100, refused)
  clock.now = 0
  expect(() => refusals.check('a')).not.toThrow()
})

test('the oldest is forgotten where there are ten thousand', () => {
  const refusals = new Refusals(() => 0)
  for (let name = 0; name < 10_000; name++) refusals.remember(String(name), 1, refused)
  refusals.remember('0', 1, refused)
  refusals.remember('another', 1, refused)
  expect(() => refusals.check('1')).not.toThrow()
  for (const name of ['0', '2', 'another']) expect(() => refusals.check(name)).toThrow('Again.')
})
