import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { content, EVENT_STREAM, ROLE } from '../faults/answers.ts'
import { together } from '../faults/trial.ts'
import type { Customer } from '../faults/world.ts'
import { openLoadWorld, type LoadWorld } from '../load/load-world.ts'
import { becomesTrue } from '../support/stack.ts'

const CLIENTS = 800
const AT_A_TIME = 10
const DELTA = content('x'.repeat(200_000))
/** What 2,400 answers that stay in memory exceed by far. */
const MAX_GROWTH_MIB = 250

let world: LoadWorld
let reached = 0

beforeAll(async () => {
  world = await openLoadWorld({
    scripts: {
      waiting: ({ wire }) => {
        reached += 1
        wire.head(200, EVENT_STREAM)
        wire.send(ROLE + DELTA)
      },
    },
    alone: ['waiting'],
    timeouts: {},
    customers: AT_A_TIME,
  })
}, 120_000)
afterAll(() => world.close())

/** Leaves while its provider has begun an answer and is silent. */
async function leave({ key }: Customer): Promise<void> {
  const leaving = new AbortController()
  const before = reached
  const call = world.stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: 'waiting',
      stream: true,
      messages: [{ role: 'user', content: 'Hello.' }],
      max_tokens: 10,
    }),
    signal: leaving.signal,
  })
  call.catch(() => {})
  await becomesTrue(() => reached > before)
  await delay(20)
  leaving.abort()
}

async function manyLeave(): Promise<number> {
  const numbers = Array.from({ length: CLIENTS }, (_, index) => index)
  await together(numbers, AT_A_TIME, async (index) => {
    const customer = world.customers[index % AT_A_TIME]
    if (customer) await leave(customer)
  })
  await becomesTrue(async () => (await world.openRequests()) === 0)
  const watch = world.watch()
  return watch.stop().get('worker')?.at(-1)?.rssMib ?? Number.NaN
}

describe.skipIf(!existsSync('/proc/self/status'))(
  'clients that leave in the middle of a stream',
  () => {
    test('leave nothing of it in memory', { timeout: 600_000 }, async () => {
      const first = await manyLeave()
      await manyLeave()
      await manyLeave()
      const last = await manyLeave()
      console.log(`worker: ${first} MiB, then ${last} MiB`)
      expect(last - first).toBeLessThan(MAX_GROWTH_MIB)
    })
  },
)
