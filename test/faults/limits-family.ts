import { setTimeout as delay } from 'node:timers/promises'
import type { Script } from '../support/fault-provider.ts'
import { sound } from './answers.ts'
import { ask, type Ask } from './ask.ts'
import { ledgerTextOf } from './ledger.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type Customer, type World } from './world.ts'

/** More than is allowed: refused cleanly, and counted right. */

/** What a provider waits for before it answers, by the model that it is asked for. */
const gates = new Map<string, Promise<void>>()

const held: Script = async (call) => {
  await gates.get(call.model)
  await sound(call)
}

/** So long are admitted requests held open where fewer are refused than must be. */
const HELD_AT_MOST_MS = 20_000

/** Above the time for which they are held. */
const CLOCK_MS = 90_000
const TIMEOUTS = {
  headers_ms: CLOCK_MS,
  first_delta_ms: CLOCK_MS,
  idle_ms: CLOCK_MS,
  sync_attempt_ms: CLOCK_MS,
  stream_open_ms: CLOCK_MS,
}

const PLANS = {
  standard: {},
  'two-at-once': { concurrent_requests: 2 },
  'three-a-minute': { requests_per_minute: 3 },
}

/** Requests that come together, of which so many must be refused: those that are admitted stay open until then. */
interface Together {
  readonly times: number
  readonly refused: number
  readonly request: Ask
}

async function countOf(
  world: World,
  customer: Customer,
  { times, refused, request }: Together,
): Promise<string> {
  const { promise: open, resolve } = Promise.withResolvers<void>()
  gates.set(request.model, Promise.race([open, delay(HELD_AT_MOST_MS, undefined, { ref: false })]))
  if (refused === 0) resolve()
  let answered = 0
  const heard = await Promise.all(
    Array.from({ length: times }, async () => {
      const one = await ask(world, customer, request)
      answered += 1
      if (answered === refused) resolve()
      return one
    }),
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

/** A trial with a model of its own, because what it holds open must not hold another one's. */
interface Case {
  readonly name: string
  readonly model: string
  readonly expected: string
  readonly run: (world: World, model: string) => Promise<string>
}

function limit(
  name: string,
  customer: Record<string, unknown>,
  { times, refused, expected }: Omit<Together, 'request'> & { readonly expected: string },
): Case[] {
  return [true, false].map((stream) => {
    const way = stream ? 'stream' : 'whole'
    return {
      name: `${name} (${way})`,
      model: `${String(customer['plan'])}-${way}`,
      expected,
      run: async (world, model) => {
        const owner = await world.newCustomer(customer)
        const seen = await countOf(world, owner, { times, refused, request: { model, stream } })
        const [, wrong] = (await ledgerTextOf(world, owner)).split(', but ')
        return `${seen}${wrong === undefined ? '' : `, but ${wrong}`}`
      },
    }
  })
}

/** A reservation for the bound of the prompt and 1,000 tokens of output is a little more than 3,000,000 nano. */
const TWO_RESERVATIONS = '0.007'

const CASES: readonly Case[] = [
  ...limit(
    'six at once where two may be',
    { plan: 'two-at-once' },
    { times: 6, refused: 4, expected: `2 x ${OK}; 4 x ${LIMITED}` },
  ),
  ...limit(
    'five in a minute of three',
    { plan: 'three-a-minute' },
    { times: 5, refused: 2, expected: `2 x ${LIMITED}; 3 x ${OK}` },
  ),
  {
    name: 'failure 28: six at once where the balance covers two',
    model: 'balance',
    expected: `2 x ${OK}; 4 x 402 insufficient_balance`,
    run: async (world, model) => {
      const poor = await world.newCustomer({ balance_eur: TWO_RESERVATIONS })
      return countOf(world, poor, { times: 6, refused: 4, request: { model, stream: true } })
    },
  },
  {
    name: 'once those are done, there is room again',
    model: 'again',
    expected: `2 x ${OK}; 4 x ${LIMITED} then 2 x ${OK}`,
    run: async (world, model) => {
      const customer = await world.newCustomer({ plan: 'two-at-once' })
      const request = { model, stream: true }
      const first = await countOf(world, customer, { times: 6, refused: 4, request })
      const second = await countOf(world, customer, { times: 2, refused: 0, request })
      return `${first} then ${second}`
    },
  },
]

const trialOf = ({ name, model, expected, run }: Case): Trial<World> => ({
  name,
  expected,
  run: (world) => run(world, model),
})

export const LIMITS_FAMILY: AnyFamily = family({
  name: 'more than the limits',
  trials: CASES.map(trialOf),
  atATime: 4,
  open: () => {
    const routes = CASES.map(({ model }) => ({ model, at: 'alpha' as const, script: held }))
    return openWorld(routes, { plans: PLANS, timeouts: TIMEOUTS })
  },
  close: (world) => world.close(),
})
