import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { healthy } from '../faults/answers.ts'
import { PROMPT } from '../faults/ask.ts'
import { CASES } from '../faults/provider-family.ts'
import { together } from '../faults/trial.ts'
import { openWorld, type Customer, type World, type WorldRoute } from '../faults/world.ts'

/**
 * The doors besides Chat Completions over pinned egress, where the daemon writes their streams: every fault of a provider
 * must look as it does where the worker writes them, to the byte.
 */

const BODIES = {
  '/v1/responses': { input: PROMPT },
  '/v1/messages': { max_tokens: 1_000, messages: [{ role: 'user', content: PROMPT }] },
} as const

type Door = keyof typeof BODIES

const DOORS: readonly Door[] = ['/v1/responses', '/v1/messages']

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
  ...CASES.flatMap(({ name, script, stream, more }) =>
    script && stream?.alone ? [{ name, script, more }] : [],
  ),
]

/** A fault at a door; it has models, and so health, of its own. */
const TRIALS = FAULTS.flatMap((fault, index) =>
  DOORS.map((door) => ({ fault, door, model: `m${index}-${door.slice(4)}` })),
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

async function ask(door: Door, model: string, more: object = {}, headers: object = {}) {
  const answer = await world.stack.fetch(door, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${customer.key}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify({ model, stream: true, ...BODIES[door], ...more }),
  })
  return `${answer.status} ${await answer.text()}`
}

/** What came of one trial, over pinned egress and where the worker writes. */
interface Seen {
  readonly pinned: string
  readonly direct: string
  readonly digests: readonly unknown[]
}

async function run({ fault, door, model }: (typeof TRIALS)[number]): Promise<Seen> {
  const more = 'more' in fault ? fault.more : {}
  const pinned = await ask(door, `${model}-p`, more)
  const direct = await ask(door, `${model}-d`, more)
  return { pinned, direct, digests: await digestsOf(pinned) }
}

/** An answer without what differs from request to request: its ids, its time, its route, and the comments in between. */
function comparable(answer: string): string {
  return answer
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replaceAll(/(alpha|beta)\/(m\d+-\w+|sound)-[pd]/g, 'ROUTE')
    .replaceAll(/(m\d+-\w+|sound)-[pd]/g, 'MODEL')
    .replaceAll(': keep-alive\n\n', '')
}

const usageSchema = z.object({
  data: z.array(
    z.object({
      model: z.string(),
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      receipt_id: z.string().nullable(),
    }),
  ),
})

/** What the last request of a model was billed, and how often it was billed. */
async function billOf(model: string, requests: number): Promise<string> {
  const headers = { authorization: `Bearer ${customer.key}` }
  const query = new URLSearchParams({ limit: '1000', model })
  const { data } = usageSchema.parse(
    await (await world.stack.fetch(`/v1/usage?${query}`, { headers })).json(),
  )
  const [row] = data
  if (row === undefined) return 'no row'
  const times = data.length > requests ? `${data.length} rows of ${requests} requests, ` : ''
  return `${times}${row.prompt_tokens}+${row.completion_tokens}, ${row.receipt_id === null ? 'no' : 'a'} receipt`
}

const receiptSchema = z.object({ receipt: z.string() })

/** The digest of the client's bytes by the receipt that a complete answer names, and by its bytes. */
async function digestsOf(answer: string): Promise<readonly unknown[]> {
  const text = answer.slice('200 '.length)
  const receiptId = /"receipt_id":"([^"]+)"/.exec(text)?.[1]
  if (receiptId === undefined) return []
  const headers = { authorization: `Bearer ${customer.key}` }
  const found = await world.stack.fetch(`/v1/receipts/${receiptId}`, { headers })
  const claims = decodeJwt(receiptSchema.parse(await found.json()).receipt)
  const covered = text.slice(0, text.lastIndexOf('event: '))
  return [claims['client_response_digest'], createHash('sha256').update(covered).digest('hex')]
}

describe('a stream that the daemon writes for another door', () => {
  const seen = new Map<string, Seen>()

  beforeAll(async () => {
    await together(TRIALS, 8, async (trial) => seen.set(trial.model, await run(trial)))
  }, 400_000)

  // Clocks of five seconds may be short on a busy machine, so a trial is repeated with its test.
  test.for(TRIALS)(
    '$door, where the provider has this fault: $fault.name',
    { timeout: 60_000 },
    async (trial, { task }) => {
      const repeated = (task.result?.retryCount ?? 0) > 0
      const result = repeated ? await run(trial) : seen.get(trial.model)
      const { pinned = '', direct = '', digests = [] } = result ?? {}
      expect(comparable(pinned)).toBe(comparable(direct))
      expect(pinned).not.toBe('')
      expect(digests[0]).toBe(digests[1])
      const requests = 1 + (task.result?.retryCount ?? 0)
      const bill = await billOf(`alpha/${trial.model}-p`, requests)
      expect(bill).toBe(await billOf(`beta/${trial.model}-d`, requests))
      expect(bill).not.toContain('rows of')
      expect(bill.endsWith(', a receipt')).toBe(digests.length > 0)
    },
  )

  test.each(DOORS)('%s: most of what a provider sends ends well or in an event', (door) => {
    const answers = TRIALS.filter((trial) => trial.door === door).map(({ model }) =>
      seen.get(model),
    )
    const receipts = answers.filter((answer) => (answer?.digests.length ?? 0) > 0)
    const failed = answers.filter((answer) =>
      /^200 [^]*(failed|event: error)/.test(answer?.pinned ?? ''),
    )
    expect(receipts.length).toBeGreaterThan(10)
    expect(failed.length).toBeGreaterThan(5)
  })

  test.each(DOORS)('%s: a repeat with an Idempotency-Key brings the same bytes', async (door) => {
    const headers = { 'idempotency-key': `twice-${door}` }
    const first = await ask(door, 'sound-p', {}, headers)
    expect(comparable(first)).toBe(comparable(await ask(door, 'sound-d')))
    expect(await ask(door, 'sound-p', {}, headers)).toBe(first)
  })

  test.each([70, 300])(
    'a response repeats instructions of %i KiB, whoever writes it',
    async (kibibytes) => {
      const more = { instructions: 'é'.repeat(kibibytes * 512) }
      const pinned = await ask('/v1/responses', 'sound-p', more)
      expect(comparable(pinned)).toBe(comparable(await ask('/v1/responses', 'sound-d', more)))
      const [claimed, covered] = await digestsOf(pinned)
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
