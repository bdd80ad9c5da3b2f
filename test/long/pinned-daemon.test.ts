import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { content, EVENT_STREAM, ROLE } from '../faults/answers.ts'
import { PROMPT, PROMPT_ESTIMATE } from '../faults/ask.ts'
import { settledLedger } from '../faults/ledger.ts'
import { openWorld, type World } from '../faults/world.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import type { Script } from '../support/fault-provider.ts'

const MODEL = 'begun'

/** Long enough that only the daemon's failure can end the stream before. */
const IDLE_MS = 10_000

let world: World

beforeAll(async () => {
  const script: Script = ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + content('Hello '))
  }
  const timeouts = { idle_ms: IDLE_MS, stream_ms: 120_000, keep_alive_ms: 60_000 }
  world = await openWorld([{ model: MODEL, at: 'alpha', script }], { pinned: true, timeouts })
}, 120_000)
afterAll(() => world.close())

const pidsSchema = z.object({ enclave: z.int() })

/** A stream that has begun, and what comes of it once something is done to the daemon. */
async function begunStream(signal: NodeJS.Signals): Promise<string> {
  const customer = await world.newCustomer()
  const client = await RawClient.connect(world.stack.local.base_url)
  const body = JSON.stringify({
    model: MODEL,
    stream: true,
    messages: [{ role: 'user', content: PROMPT }],
  })
  const headers = { authorization: `Bearer ${customer.key}`, 'content-length': body.length }
  client.send(rawRequest('POST', '/v1/chat/completions', headers, body))
  expect(await client.hears('Hello ', 30_000)).toBe(true)
  const { enclave } = pidsSchema.parse(world.stack.local.pids)
  process.kill(enclave, signal)
  const told = await client.hears('"code":', 60_000)
  if (signal === 'SIGSTOP') process.kill(enclave, 'SIGCONT')
  const code = /"code":"(\w+)"/.exec(client.received)?.[1]
  client.leave()
  // The supervisor may be starting the parts again.
  const isRow = (seen: string) => seen.startsWith('alpha')
  const books = () => settledLedger(world, customer, isRow).catch(String)
  await expect.poll(books, { timeout: 60_000 }).toMatch(/^alpha/)
  return `${told ? code : 'nothing'} | ${await books()}`
}

it('a stream whose daemon stands still is cut, although the runtime moves its bytes', async () => {
  expect(await begunStream('SIGSTOP')).toMatch(/^upstream_timeout \| alpha \d+\+\d+, no receipt$/)
})

it('a stream whose daemon dies is cut with an error event, and its prompt is billed', async () => {
  expect(await begunStream('SIGKILL')).toBe(`bad_gateway | alpha ${PROMPT_ESTIMATE}+0, no receipt`)
})
