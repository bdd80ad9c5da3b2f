import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sound, status } from '../faults/answers.ts'
import { ask } from '../faults/ask.ts'
import { openWorld, type Customer, type World } from '../faults/world.ts'
import type { Script } from '../support/fault-provider.ts'
import { until } from '../support/stack.ts'

/** A region that goes down under load, in every way in which a region can. */

const MODEL = 'regional'
const CALLERS = 6
const UP_MS = 500
const DOWN_MS = 4_000
const COOLDOWN_MS = 700

const WAYS: readonly (readonly [string, Script])[] = [
  ['resetting connections', ({ wire }) => wire.reset()],
  ['answering 503', status(503)],
  ['answering 429 with a wait', status(429, { 'retry-after': '1' })],
  ['answering 500', status(500)],
  ['falling silent', () => {}],
  ['closing after the headers', ({ wire }) => (wire.head(200), wire.end())],
]

let down: Script | undefined
let world: World
let customer: Customer

beforeAll(async () => {
  const eu: Script = (call) => (down ?? sound)(call)
  world = await openWorld(
    [
      { model: MODEL, at: 'alpha', script: eu, more: { region: 'eu' } },
      { model: MODEL, at: 'beta', more: { region: 'us' } },
    ],
    {
      // Silence is noticed soon, and yet a busy machine answers in time.
      timeouts: { headers_ms: 2_500, sync_attempt_ms: 2_500 },
      service: { breaker: { errors: 3, window_ms: 30_000, cooldown_ms: COOLDOWN_MS } },
    },
  )
  customer = await world.newCustomer()
})
afterAll(() => world.close())

/** The answers that callers without pauses get until the time is over. */
async function load(model: string, forMs: number): Promise<string[]> {
  const heard: string[] = []
  const deadline = performance.now() + forMs
  await Promise.all(
    Array.from({ length: CALLERS }, async (_caller, index) => {
      while (performance.now() < deadline) {
        heard.push((await ask(world, customer, { model, stream: index % 2 === 0 })).words)
      }
    }),
  )
  return heard
}

describe.each(WAYS)('a region going down by %s', (_way, fault) => {
  test('moves traffic with no failed request, spares it probes, and gets it back', async () => {
    const running = load(MODEL, UP_MS + DOWN_MS)
    await delay(UP_MS)
    const before = world.provider.calls(MODEL).length
    const since = performance.now()
    down = fault
    const heard = await running
    const downMs = performance.now() - since
    const during = world.provider.calls(MODEL).slice(before)
    const pinned = await ask(world, customer, { model: `eu/${MODEL}`, stream: true })
    down = undefined

    expect(heard.filter((words) => !words.startsWith('200 stop "Hello from the '))).toEqual([])
    expect(heard.filter((words) => words.includes('the other')).length).toBeGreaterThan(0)
    // Every caller may meet the fault once before the circuit opens; after that a rest has one probe.
    const tries = during.filter((call) => call.provider === 'alpha').length
    expect(tries).toBeLessThanOrEqual(2 * CALLERS + downMs / COOLDOWN_MS + 3)
    expect(pinned.words).toMatch(
      /^(503 routes_unavailable|429 upstream_rate_limit|502 bad_gateway)/,
    )

    // Once its rest is over: a wait that the provider asked for counts for as long as it said.
    let back = ''
    await until(async () => {
      back = (await ask(world, customer, { model: MODEL, stream: true })).words
      return back.includes('the first')
    })
    expect(back).toContain('the first')
  })
})
