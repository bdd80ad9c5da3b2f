import { expect, test } from 'vitest'
import { Latest } from '../../../src/browser/parts/latest.ts'

test('a verdict that comes late is not shown in the place of what was asked for after it', async () => {
  const shown: string[] = []
  const latest = new Latest<string>((value) => shown.push(value))
  const [first, second, third] = Array.from({ length: 3 }, () => Promise.withResolvers<string>())
  const one = latest.await(first?.promise ?? Promise.resolve(''))
  const two = latest.await(second?.promise ?? Promise.resolve(''))
  second?.resolve('NOT VALID')
  await two
  first?.resolve('VALID')
  await one
  expect(shown).toEqual(['NOT VALID'])
  const three = latest.await(third?.promise ?? Promise.resolve(''))
  latest.set('nothing judged yet')
  third?.resolve('VALID')
  await three
  expect(shown).toEqual(['NOT VALID', 'nothing judged yet'])
})
