import { expect, test } from 'vitest'
import { formatPath } from '../../src/protocol/config-problem.ts'

test('the path of a problem is written as a reader would', () => {
  expect(formatPath(['routes', 3, 'efforts', 'a-b', 'c'])).toBe('routes[3].efforts["a-b"].c')
  expect(formatPath([])).toBe('(the whole file)')
})
