import { expect, test } from 'vitest'
import { SourceBudget } from '../../../src/worker/http/source-budget.ts'

test('a source has its own budget, all together have theirs, and both are whole again after the window', () => {
  const clock = { now: 1_000_000 }
  const budget = new SourceBudget({ perSource: 2, total: 3, windowMs: 100 }, () => clock.now)
  const spend = () => ['a', 'a', 'a', 'b', 'b'].map((source) => budget.spend(source))
  expect(spend()).toEqual([true, true, false, true, false])
  clock.now += 99
  expect(budget.spend('c')).toBe(false)
  clock.now += 1
  expect(spend()).toEqual([true, true, false, true, false])
  // A clock that was set back does not keep the budget spent.
  clock.now -= 500
  expect(spend()).toEqual([true, true, false, true, false])
})
