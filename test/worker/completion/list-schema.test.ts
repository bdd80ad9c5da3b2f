import { expect, test } from 'vitest'
import { hasText, isText, listOf, textsByName } from '../../../src/worker/completion/list-schema.ts'

test('a list is checked up to its first wrong element: millions of wrong ones cost nothing', () => {
  let asked = 0
  const counting = (value: unknown): value is string => {
    asked += 1
    return isText(value)
  }
  const list = listOf(counting)
  const wrong = list.safeParse(['a', ...Array.from({ length: 1000 }, () => 1)])
  expect(wrong.error?.issues).toHaveLength(1)
  expect(asked).toBe(2)
})

test('a list of the right elements is returned as it is', () => {
  expect(listOf(isText).parse(['a', ''])).toEqual(['a', ''])
  expect(listOf(isText).parse([])).toEqual([])
  const blocks = [{ type: 'text', text: 'a', more: 1 }]
  expect(listOf(hasText('type')).parse(blocks)).toEqual(blocks)
})

test('what is no list, or has a wrong element, is refused', () => {
  for (const value of ['a', null, {}, [1], ['a', null]]) {
    expect(listOf(isText).safeParse(value).success).toBe(false)
  }
  for (const value of [[1], [null], [{}], [{ type: 1 }], [[]]]) {
    expect(listOf(hasText('type')).safeParse(value).success).toBe(false)
  }
})

test('an object of texts is refused with one description, however many values are wrong', () => {
  expect(textsByName.parse({ a: 'b' })).toEqual({ a: 'b' })
  const wrong = textsByName.safeParse({ a: 1, b: 2, c: 3 })
  expect(wrong.error?.issues).toHaveLength(1)
  for (const value of [[], null, 'a']) expect(textsByName.safeParse(value).success).toBe(false)
})
