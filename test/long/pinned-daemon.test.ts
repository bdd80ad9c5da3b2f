import { afterAll, beforeAll, expect, it } from 'vitest'
import { content, EVENT_STREAM, ROLE } from '../faults/answers.ts'
import { PROMPT, PROMPT_ESTIMATE } from '../faults/ask.ts'
import { settledLedger } from '../faults/ledger.ts'
import { openWorld, type Customer, type StackWorld } from '../faults/world.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import type { Script } from '../support/fault-provider.ts'
import { becomesTrue, until } from '../support/stack.ts'

const MODEL = 'begun'

/** Long enough that only the daemon's failure can end the stream before. */
const IDLE_MS = 30_000

/** Longer than all that one test waits for on a slow machine. */
const TEST_MS = 400_000

let world: StackWorld

beforeAll(async () => {
  const script: Script = ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + content('Hello '))
  }
  const timeouts = { idle_ms: IDLE_MS, stream_ms: 600_000, keep_alive_ms: 60_000 }
  world = await openWorld([{ model: MODEL, at: 'alpha', script }], { pinned: true, timeouts })
}, 120_000)
afterAll(() => world.close())

/** What a stream of each endpoint is asked with, and what names the failure in its last event. */
const API_FORMATS = {
  chat: {
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: PROMPT }] },
    failure: /^data: \{.*"error":\{.*"code":"(\w+)"/m,
  },
  responses: {
    path: '/v1/responses',
    body: { input: PROMPT },
    failure: /^data: \{"type":"response\.failed".*"error":\{"code":"(\w+)"/m,
  },
  messages: {
    path: '/v1/messages',
    body: { max_tokens: 100, messages: [{ role: 'user', content: PROMPT }] },
    failure: /^data: \{"type":"error","error":\{"type":"(\w+)"/m,
  },
} as const

type ApiPath = keyof typeof API_FORMATS

/** A stream that has begun; undefined where it was refused. */
async function begin(api: ApiPath, { key }: Customer): Promise<RawClient | undefined> {
  const client = await RawClient.connect(world.stack.local.base_url)
  const { path, body } = API_FORMATS[api]
  const text = JSON.stringify({ model: MODEL, stream: true, ...body })
  const headers = { authorization: `Bearer ${key}`, 'content-length': text.length }
  client.send(rawRequest('POST', path, headers, text))
  if (await client.hears('Hello ', 60_000)) return client
  client.leave()
  return undefined
}

/** A stream that has begun, and what comes of it once something is done to the daemon. */
async function begunStream(api: ApiPath, signal: NodeJS.Signals): Promise<string> {
  const customer = await world.newCustomer()
  let client: RawClient | undefined
  // The daemon of the case before may be starting again, and its providers' evidence is not verified at once.
  await until(async () => (client = await begin(api, customer)) !== undefined)
  const { enclave } = world.stack.localNow().pids
  process.kill(enclave, signal)
  const failure = () => API_FORMATS[api].failure.exec(client?.received ?? '')?.[1]
  await becomesTrue(() => failure() !== undefined || client?.closed === true)
  if (signal === 'SIGSTOP') process.kill(enclave, 'SIGCONT')
  const told = failure() ?? 'nothing'
  client?.leave()
  // The supervisor may be starting the parts again.
  const isRow = (seen: string) => seen.startsWith('alpha')
  const books = () => settledLedger(world, customer, isRow).catch(String)
  await expect.poll(books, { timeout: 120_000 }).toMatch(/^alpha/)
  return `${told} | ${await books()}`
}

it(
  'a stream whose daemon stands still is cut, although the runtime moves its bytes',
  async () => {
    const told = await begunStream('chat', 'SIGSTOP')
    expect(told).toMatch(/^service_unavailable \| alpha \d+\+\d+, no receipt$/)
  },
  TEST_MS,
)

it.each([
  ['chat', 'service_unavailable'],
  ['responses', 'server_is_overloaded'],
  ['messages', 'incomplete_response_error'],
] as const)(
  'a stream of %s whose daemon dies is cut with an error event, and its prompt is billed',
  async (api, failure) => {
    const told = await begunStream(api, 'SIGKILL')
    expect(told).toBe(`${failure} | alpha ${PROMPT_ESTIMATE}+0, no receipt`)
  },
  TEST_MS,
)
