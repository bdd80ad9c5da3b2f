import { expect, test } from 'vitest'
import { Budget } from '../../../src/worker/routing/budget.ts'

test('who waits for the end of a budget hears of it once, after the signal, and not after leaving', () => {
  const budget = new Budget(Date.now)
  const heard: unknown[] = []
  budget.onAbort(() => heard.push(budget.signal.reason))
  const leave = budget.onAbort(() => heard.push('left'))
  leave()
  budget.abort('first')
  budget.abort('second')
  expect(heard).toEqual(['first'])
})
