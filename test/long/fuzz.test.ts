import { expect, test } from 'vitest'
import { fuzz } from '../fuzz/run.ts'

/** The same thousand at each run; `npm run fuzz` sends more, of another seed each time. */
const PLAN = { requests: 1_000, seed: 7 }

test('a thousand generated requests meet no error of the router’s own, no hang and no crash', async () => {
  const { faults, answers, reachedProvider } = await fuzz(PLAN)
  expect(faults).toEqual([])
  expect([...answers.values()].reduce((sum, count) => sum + count, 0)).toBe(PLAN.requests)
  // Noise that is refused at the entrance would prove little.
  expect(reachedProvider).toBeGreaterThan(100)
}, 90_000)
