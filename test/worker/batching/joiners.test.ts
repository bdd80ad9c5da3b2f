import { expect, test } from 'vitest'
import { waitForJoiners, type GatheringRules } from '../../../src/worker/batching/joiners.ts'

interface Case {
  readonly openRequests?: number
  readonly maxItems?: number
  /** How many join in each turn; none in those after them. */
  readonly joining?: readonly number[]
  /** How long a turn takes, ms. */
  readonly turnMs?: number
}

/** A call that one item has opened, and how many turns it waits. */
async function turnsOf({ openRequests, maxItems = 100, joining = [], turnMs = 0 }: Case) {
  const items = ['first']
  const time = { now: 1_000 }
  const rules: GatheringRules = {
    maxItems,
    now: () => time.now,
    ...(openRequests !== undefined && { openRequests: () => openRequests }),
  }
  let turns = 0
  await waitForJoiners({ items, openedAt: time.now }, rules, async () => {
    time.now += turnMs
    for (let joined = 0; joined < (joining[turns] ?? 0); joined += 1) items.push('joined')
    turns += 1
  })
  return { turns, items: items.length }
}

test('a request that is alone waits for nobody', async () => {
  expect(await turnsOf({ openRequests: 1 })).toEqual({ turns: 0, items: 1 })
})

test.each([
  [2, 1],
  [4, 2],
  [8, 4],
  [10, 5],
  [500, 5],
])('beside %i open requests a call leaves after %i turns without a joiner', async (open, turns) => {
  expect(await turnsOf({ openRequests: open })).toEqual({ turns, items: 1 })
})

test('where it is not known how many requests are open, one turn without a joiner is enough', async () => {
  expect(await turnsOf({})).toEqual({ turns: 1, items: 1 })
  expect(await turnsOf({ joining: [1, 0, 1] })).toEqual({ turns: 2, items: 2 })
})

test('a joiner has the quiet turns counted from the first again', async () => {
  const joining = [0, 0, 0, 0, 2, 0, 0, 1]
  expect(await turnsOf({ openRequests: 64, joining })).toEqual({ turns: 13, items: 4 })
})

test('a call leaves at once when all open requests have joined it', async () => {
  expect(await turnsOf({ openRequests: 3, joining: [0, 2] })).toEqual({ turns: 2, items: 3 })
})

test('a call leaves at once when it has as many items as it may', async () => {
  expect(await turnsOf({ openRequests: 64, maxItems: 5, joining: [4] })).toEqual({
    turns: 1,
    items: 5,
  })
})

test('a steady flow of joiners delays the first by sixteen turns at most', async () => {
  const joining = Array.from({ length: 50 }, () => 1)
  expect(await turnsOf({ openRequests: 64, joining })).toEqual({ turns: 16, items: 17 })
})

test('turns that take long delay it by twenty milliseconds and one turn at most', async () => {
  const joining = Array.from({ length: 50 }, () => 1)
  expect(await turnsOf({ openRequests: 64, joining, turnMs: 7 })).toEqual({ turns: 3, items: 4 })
  expect(await turnsOf({ openRequests: 64, joining, turnMs: 50 })).toEqual({ turns: 1, items: 2 })
})

test('a clock that is set back ends the wait', async () => {
  expect(await turnsOf({ openRequests: 64, turnMs: -1 })).toEqual({ turns: 1, items: 1 })
})
