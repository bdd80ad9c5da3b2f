import { afterAll, beforeAll, expect, test } from 'vitest'
import { answering, completion, sound } from '../faults/answers.ts'
import { openWorld, type Customer, type World } from '../faults/world.ts'

const MIB = 1024 * 1024
const AT_ONCE = 16

/** An answer of twelve mebibytes with almost as many values as are parsed at all. */
const LARGE = JSON.stringify({
  ...completion({ content: 'x'.repeat(11 * MIB) }),
  ignored: Array.from({ length: 240_000 }, () => ({})),
})

let world: World

beforeAll(async () => {
  const large = answering('', LARGE)
  const timeouts = { sync_attempt_ms: undefined, idle_ms: 60_000 }
  world = await openWorld(
    [
      { model: 'large', at: 'alpha', script: large },
      { model: 'sound', at: 'alpha', script: sound },
    ],
    { timeouts },
  )
})
afterAll(() => world.close())

async function chat({ key }: Customer, model: string): Promise<number> {
  const answer = await world.stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }] }),
  })
  await answer.arrayBuffer()
  return answer.status
}

test('sixteen answers of twelve mebibytes at once refuse nothing to another customer', async () => {
  const [greedy, other] = await Promise.all([world.newCustomer(), world.newCustomer()])
  let left = AT_ONCE
  const large = Promise.all(
    Array.from({ length: AT_ONCE }, () => chat(greedy, 'large').finally(() => (left -= 1))),
  )
  const others: number[] = []
  // oxlint-disable-next-line no-await-in-loop -- a customer that asks one thing after another
  while (left > 0) others.push(await chat(other, 'sound'))
  expect(others.length).toBeGreaterThan(1)
  expect(new Set(others)).toEqual(new Set([200]))
  const statuses = await large
  expect(statuses).toContain(200)
  // What does not fit into the memory of one customer is told so.
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([])
  expect(await chat(greedy, 'large')).toBe(200)
}, 120_000)
