import { expect, test } from 'vitest'
import { createMicrotaskBatcher } from '../../../src/worker/batching/microtask-batcher.ts'

const HOST = { now: () => 0, keepAlive: () => {} }

function noted(rules: { maxItems?: number; max?: number } = {}) {
  const calls: (readonly number[])[] = []
  const run = async (items: readonly number[]) => {
    calls.push([...items])
    return items.map((item) => item * 10)
  }
  const size =
    rules.max === undefined ? {} : { size: { of: (item: number) => item, max: rules.max } }
  return {
    calls,
    ask: createMicrotaskBatcher(HOST, { run, maxItems: rules.maxItems ?? 10, ...size }),
  }
}

test('items of one moment share a call, and each gets its own answer', async () => {
  const { calls, ask } = noted()
  const later = Promise.resolve().then(() => ask(3))
  expect(await Promise.all([ask(1), ask(2), later])).toEqual([10, 20, 30])
  expect(calls).toEqual([[1, 2, 3]])
})

test('an item of a later moment is in a call of its own', async () => {
  const { calls, ask } = noted()
  await ask(1)
  await ask(2)
  expect(calls).toEqual([[1], [2]])
})

test('a call has no more items, and is no larger, than it may be; one larger item is sent alone', async () => {
  const few = noted({ maxItems: 2 })
  await Promise.all([1, 2, 3].map(few.ask))
  expect(few.calls).toEqual([[1, 2], [3]])
  const small = noted({ max: 5 })
  await Promise.all([9, 2, 3, 1].map(small.ask))
  expect(small.calls).toEqual([[9], [2, 3], [1]])
})

test.each([
  ['joins while the moment lasts, though the clock runs on', 20, [[1, 2]]],
  ['does not join a batch that its request has left behind', 100, [[1], [2]]],
  ['does not join after the clock was set back', -1, [[1], [2]]],
])('a later item %s (%i ms)', async (_what, ms, expected) => {
  let now = 0
  const calls: (readonly number[])[] = []
  const run = async (items: readonly number[]) => {
    calls.push([...items])
    return items
  }
  const ask = createMicrotaskBatcher({ now: () => now, keepAlive: () => {} }, { run, maxItems: 10 })
  const first = ask(1)
  now = ms
  await Promise.all([first, ask(2)])
  expect(calls).toEqual(expected)
})

test('a call that fails fails each of its items, and no other', async () => {
  const failure = new Error('refused')
  const run = async (items: readonly number[]) => {
    if (items.includes(1)) throw failure
    return items
  }
  const ask = createMicrotaskBatcher(HOST, { run, maxItems: 2 })
  const ends = await Promise.allSettled([1, 2, 3].map(ask))
  expect(ends).toEqual([
    { status: 'rejected', reason: failure },
    { status: 'rejected', reason: failure },
    { status: 'fulfilled', value: 3 },
  ])
})

test('an item that the call leaves unanswered fails alone', async () => {
  const run = async (items: readonly number[]) => items.slice(0, 1)
  const ask = createMicrotaskBatcher(HOST, { run, maxItems: 10 })
  const ends = await Promise.allSettled([1, 2].map(ask))
  expect(ends).toMatchObject([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { message: 'internal error: an item of a batch got no answer' } },
  ])
})

test('the request that opens a batch is kept alive until its call has ended', async () => {
  const kept: Promise<unknown>[] = []
  const events: string[] = []
  const run = async (items: readonly number[]) => {
    await Promise.resolve()
    events.push('called')
    return items
  }
  const host = { now: () => 0, keepAlive: (work: Promise<unknown>) => kept.push(work) }
  const ask = createMicrotaskBatcher(host, { run, maxItems: 10 })
  const answers = [ask(1), ask(2)]
  expect(kept).toHaveLength(1)
  await kept[0]
  expect(events).toEqual(['called'])
  await Promise.all(answers)
})
