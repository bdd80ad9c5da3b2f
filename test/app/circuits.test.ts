import { afterAll, beforeAll, expect, test } from 'vitest'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { FIRST, OTHER, sound, status } from '../faults/answers.ts'
import { ask } from '../faults/ask.ts'
import { openWorld, type StackWorld } from '../faults/world.ts'
import { until } from '../support/stack.ts'
import type { ProviderCall } from '../support/fault-provider.ts'

const MODELS = ['whole', 'streamed', 'whole-long', 'streamed-long'].map((name) => `circuit-${name}`)
const FALLBACK = 'circuit-fallback'

/** In the content of requests that the first provider cannot bear. */
const POISON = 'POISON'

/** In that of requests whose answer takes it long, streamed or whole. */
const LONG = 'LONG'
const LONG_MS = 20_000

const ERRORS = 5

let world: StackWorld

beforeAll(async () => {
  const script = async (call: ProviderCall) => {
    if (call.body.includes(LONG)) await delay(LONG_MS)
    return call.body.includes(POISON) ? status(500)(call) : sound(call)
  }
  const primaries = MODELS.map((model) => ({ model, at: 'alpha' as const, script }))
  world = await openWorld([...primaries, { model: FALLBACK, at: 'beta' }], {
    service: { breaker: { errors: ERRORS, window_ms: 600_000, cooldown_ms: 300_000 } },
  })
})
afterAll(() => world.close())

/** How many failures of a route its worker has written down. */
function failuresNoted(model: string): number {
  const log = readFileSync(join(world.stack.stateDir, 'log/worker.log'), 'utf8')
  const isOne = (line: string) => line.includes('"attempt_failed"') && line.includes(`/${model}"`)
  return log.split('\n').filter(isOne).length
}

test.each([
  // A route had enough time only after four seconds.
  ['whole', false, { 'x-service-timeout-seconds': '5' }],
  ['streamed', true, undefined],
])(
  '%s answers: a route that works on what one customer asks for until its time is over rests for that customer alone',
  async (name, stream, headers) => {
    const [customer, other] = [await world.newCustomer(), await world.newCustomer()]
    const request = { model: `circuit-${name}-long`, stream, more: { failover: [FALLBACK] } }
    const long = {
      model: request.model,
      stream,
      more: { user: LONG },
      ...(headers !== undefined && { headers }),
    }
    await Promise.all(Array.from({ length: ERRORS }, () => ask(world, customer, long)))
    // Their clients do not wait until the daemon was asked whether it was to blame.
    await until(() => failuresNoted(request.model) === ERRORS)
    expect((await ask(world, customer, request)).text).toBe(OTHER)
    expect((await ask(world, other, request)).text).toBe(FIRST)
  },
  30_000,
)

test.each([
  ['whole', false],
  ['streamed', true],
])(
  '%s answers: a route that fails because of what one customer sends rests for that customer alone',
  async (name, stream) => {
    const customer = await world.newCustomer()
    const [other, third] = [await world.newCustomer(), await world.newCustomer()]
    const request = { model: `circuit-${name}`, stream, more: { failover: [FALLBACK] } }
    const poisoned = { ...request, more: { ...request.more, user: POISON } }
    for (let count = 0; count < ERRORS; count++) {
      expect((await ask(world, customer, poisoned)).text).toBe(OTHER)
    }
    expect((await ask(world, customer, request)).text).toBe(OTHER)
    expect((await ask(world, other, request)).text).toBe(FIRST)

    // Of two customers, the failures are those of the route.
    expect((await ask(world, other, poisoned)).text).toBe(OTHER)
    expect((await ask(world, third, request)).text).toBe(OTHER)
  },
)
