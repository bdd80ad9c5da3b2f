import { setTimeout as delay } from 'node:timers/promises'
import type { Script } from '../support/fault-provider.ts'
import { sound } from './answers.ts'
import { ask, type Ask } from './ask.ts'
import { ledgerTextOf } from './ledger.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type Customer, type World } from './world.ts'

/** More than is allowed: refused cleanly, and counted right. */

const slow: Script = async (call) => {
  await delay(1_000)
  await sound(call)
}

const PLANS = {
  standard: {},
  'two-at-once': { concurrent_requests: 2 },
  'three-a-minute': { requests_per_minute: 3 },
}

async function countOf(
  world: World,
  customer: Customer,
  times: number,
  request: Ask,
): Promise<string> {
  const heard = await Promise.all(
    Array.from({ length: times }, () => ask(world, customer, request)),
  )
  const counts = new Map<string, number>()
  for (const { words } of heard) {
    // How long to wait depends on the second of the minute.
    const told = words.replace(/retry after \d+/, 'told when')
    counts.set(told, (counts.get(told) ?? 0) + 1)
  }
  return [...counts]
    .map(([words, count]) => `${count} x ${words}`)
    .toSorted()
    .join('; ')
}

const OK = '200 stop "Hello from the first."'
const LIMITED = '429 rate_limit_exceeded, told when'

function limit(
  name: string,
  customer: Record<string, unknown>,
  times: number,
  expected: string,
): Trial<World>[] {
  return [true, false].map((stream) => ({
    name: `${name} (${stream ? 'stream' : 'whole'})`,
    expected,
    run: async (world) => {
      const owner = await world.newCustomer(customer)
      const seen = await countOf(world, owner, times, { model: 'slow', stream })
      const [, wrong] = (await ledgerTextOf(world, owner)).split(', but ')
      return `${seen}${wrong === undefined ? '' : `, but ${wrong}`}`
    },
  }))
}

/** A reservation for the bound of the prompt and 1,000 tokens of output is a little more than 3,000,000 nano. */
const TWO_RESERVATIONS = '0.007'

export const LIMITS_FAMILY: AnyFamily = family({
  name: 'more than the limits',
  trials: [
    ...limit(
      'six at once where two may be',
      { plan: 'two-at-once' },
      6,
      `2 x ${OK}; 4 x ${LIMITED}`,
    ),
    ...limit(
      'five in a minute of three',
      { plan: 'three-a-minute' },
      5,
      `2 x ${LIMITED}; 3 x ${OK}`,
    ),
    {
      name: 'failure 28: six at once where the balance covers two',
      expected: `2 x ${OK}; 4 x 402 insufficient_balance`,
      run: async (world) => {
        const poor = await world.newCustomer({ balance_eur: TWO_RESERVATIONS })
        return countOf(world, poor, 6, { model: 'slow', stream: true })
      },
    },
    {
      name: 'once those are done, there is room again',
      expected: `2 x ${OK}; 4 x ${LIMITED} then 2 x ${OK}`,
      run: async (world) => {
        const customer = await world.newCustomer({ plan: 'two-at-once' })
        const first = await countOf(world, customer, 6, { model: 'slow', stream: true })
        const second = await countOf(world, customer, 2, { model: 'slow', stream: true })
        return `${first} then ${second}`
      },
    },
  ],
  atATime: 4,
  open: () => openWorld([{ model: 'slow', at: 'alpha', script: slow }], { plans: PLANS }),
  close: (world) => world.close(),
})
