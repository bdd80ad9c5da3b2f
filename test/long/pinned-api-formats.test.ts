import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { healthy } from '../faults/answers.ts'
import {
  askApi,
  billOf,
  comparable,
  digestsOf,
  API_FORMATS,
  type ApiPath,
} from '../faults/api-formats.ts'
import { CASES } from '../faults/provider-family.ts'
import { together } from '../faults/trial.ts'
import { openWorld, type Customer, type World, type WorldRoute } from '../faults/world.ts'

/**
 * The API formats besides Chat Completions over pinned egress, where the daemon writes their streams: every fault of a provider
 * must look as it does where the worker writes them, to the byte.
 */

/** Short enough that silence is over soon, and above what an answer takes on a busy machine. */
const TIMEOUTS = {
  headers_ms: 5_000,
  first_delta_ms: 5_000,
  idle_ms: 5_000,
  stream_ms: 10_000,
  stream_open_ms: 30_000,
}

const FAULTS = [
  { name: 'nothing', script: healthy },
  // Where the daemon can tell more of an answer than the worker, the two differ (provider-family).
  ...CASES.flatMap(({ name, script, stream, more, overDaemon }) =>
    script && stream?.alone && overDaemon === undefined ? [{ name, script, more }] : [],
  ),
]

/** A fault in a format; it has models, and so health, of its own. */
const TRIALS = FAULTS.flatMap((fault, index) =>
  API_FORMATS.map((api) => ({ fault, api, model: `m${index}-${api.slice(4)}` })),
)

const routes: WorldRoute[] = [
  ...TRIALS.flatMap(({ fault: { script }, model }): WorldRoute[] => [
    { model: `${model}-p`, at: 'alpha', script },
    { model: `${model}-d`, at: 'beta', script },
  ]),
  { model: 'sound-p', at: 'alpha' },
  { model: 'sound-d', at: 'beta' },
]

let world: World
let customer: Customer

beforeAll(async () => {
  world = await openWorld(routes, { pinned: true, timeouts: TIMEOUTS })
  customer = await world.newCustomer()
}, 120_000)
afterAll(() => world.close())

const ask = (api: ApiPath, model: string, more: object = {}, headers: object = {}) =>
  askApi({ world, customer }, api, model, { more, headers })

/** What came of one trial, over pinned egress and where the worker writes. */
interface Seen {
  readonly pinned: string
  readonly direct: string
  readonly digests: readonly unknown[]
}

async function run({ fault, api, model }: (typeof TRIALS)[number]): Promise<Seen> {
  const more = 'more' in fault ? fault.more : {}
  const pinned = await ask(api, `${model}-p`, more)
  const direct = await ask(api, `${model}-d`, more)
  return { pinned, direct, digests: await digestsOf({ world, customer }, pinned) }
}

describe('a stream that the daemon writes for another format', () => {
  const seen = new Map<string, Seen>()

  beforeAll(async () => {
    await together(TRIALS, 8, async (trial) => seen.set(trial.model, await run(trial)))
  }, 400_000)

  // Clocks of five seconds may be short on a busy machine, so a trial is repeated with its test.
  test.for(TRIALS)(
    '$api, where the provider has this fault: $fault.name',
    { timeout: 60_000 },
    async (trial, { task }) => {
      const repeated = (task.result?.retryCount ?? 0) > 0
      const result = repeated ? await run(trial) : seen.get(trial.model)
      const { pinned = '', direct = '', digests = [] } = result ?? {}
      expect(comparable(pinned)).toBe(comparable(direct))
      expect(pinned).not.toBe('')
      expect(digests[0]).toBe(digests[1])
      const requests = 1 + (task.result?.retryCount ?? 0)
      const bill = await billOf({ world, customer }, `alpha/${trial.model}-p`, requests)
      expect(bill).toBe(await billOf({ world, customer }, `beta/${trial.model}-d`, requests))
      expect(bill).not.toContain('rows of')
      expect(bill.endsWith(', a receipt')).toBe(digests.length > 0)
    },
  )

  test.each(API_FORMATS)('%s: most of what a provider sends ends well or in an event', (api) => {
    const answers = TRIALS.filter((trial) => trial.api === api).map(({ model }) => seen.get(model))
    const receipts = answers.filter((answer) => (answer?.digests.length ?? 0) > 0)
    const failed = answers.filter((answer) =>
      /^200 [^]*(failed|event: error)/.test(answer?.pinned ?? ''),
    )
    expect(receipts.length).toBeGreaterThan(10)
    expect(failed.length).toBeGreaterThan(5)
  })

  test.each(API_FORMATS)(
    '%s: a repeat with an Idempotency-Key brings the same bytes',
    async (api) => {
      const headers = { 'idempotency-key': `twice-${api}` }
      const first = await ask(api, 'sound-p', {}, headers)
      expect(comparable(first)).toBe(comparable(await ask(api, 'sound-d')))
      expect(await ask(api, 'sound-p', {}, headers)).toBe(first)
    },
  )

  test.each([70, 300])(
    'a response repeats instructions of %i KiB, whoever writes it',
    async (kibibytes) => {
      const more = { instructions: 'é'.repeat(kibibytes * 512) }
      const pinned = await ask('/v1/responses', 'sound-p', more)
      expect(comparable(pinned)).toBe(comparable(await ask('/v1/responses', 'sound-d', more)))
      const [claimed, covered] = await digestsOf({ world, customer }, pinned)
      expect(claimed).toBeTypeOf('string')
      expect(claimed).toBe(covered)
    },
  )

  test('a tool is shown by the name that the client gave it', async () => {
    const tools = [
      { type: 'custom', name: 'patch' },
      { type: 'function', name: 'run' },
    ]
    const pinned = await ask('/v1/responses', 'sound-p', { tools })
    expect(comparable(pinned)).toBe(comparable(await ask('/v1/responses', 'sound-d', { tools })))
  })
})
