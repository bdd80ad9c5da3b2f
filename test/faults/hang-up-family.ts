import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Script } from '../support/fault-provider.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import {
  chunk,
  content,
  DONE,
  event,
  EVENT_STREAM,
  ROLE,
  sound,
  STOP,
  TEXT,
  usageFrame,
  usageMember,
} from './answers.ts'
import { PROMPT, PROMPT_ESTIMATE } from './ask.ts'
import { openCrowdedWorld } from './crowd.ts'
import { settledLedger } from './ledger.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type Customer, type World } from './world.ts'

/** Clients that leave or do not read. */

/** The provider's clocks are so slow that only the client's leaving can explain that a connection is let go. */
const TIMEOUTS = {
  headers_ms: 30_000,
  first_delta_ms: 30_000,
  idle_ms: 30_000,
  stream_headers_after_ms: 500,
  keep_alive_ms: 200,
  stream_open_ms: 30_000,
  // Above the time in which a connection must be let go, and below the minute after which the front ends one that is not read.
  stream_ms: 45_000,
}

const LET_GO_WITHIN_MS = 20_000

/** Deltas without end, as fast as they are taken. */
const flood: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE)
  const delta = content('y'.repeat(64 * 1024))
  while (!wire.over) await wire.sendSlowly(delta)
}

const SCRIPTS: Readonly<Record<string, Script>> = {
  quick: sound,
  silent: () => {},
  accepted: ({ wire }) => wire.head(200, EVENT_STREAM),
  begun: ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + content('Hello '))
  },
  thinking: ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + event(chunk({ reasoning: 'x'.repeat(3000) })) + content('Hello '))
  },
  'further-choices': ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    const other = { index: 1, delta: { content: 'x'.repeat(3000) }, finish_reason: null }
    wire.send(ROLE + event({ choices: [other] }) + content('Hello '))
  },
  // Many models take each digit for a token, which comes as a delta of its own.
  digits: ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + '0123456789'.split('').map(content).join('') + content('Hello '))
  },
  // Each count is that of its own choice, as of vLLM with `continuous_usage_stats`.
  'counts-of-choices': ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    const counted = [1, 2, 3, 4, 5, 6].flatMap((token) =>
      [0, 1].map((index) => {
        const choices = [{ index, delta: { content: 'abc' }, finish_reason: null }]
        return event({ choices, ...usageMember({ prompt: 7, completion: token }) })
      }),
    )
    wire.send(ROLE + counted.join('') + content('Hello '))
  },
  'all-said': ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + TEXT)
  },
  finished: async ({ wire }) => {
    wire.head(200, EVENT_STREAM)
    wire.send(ROLE + TEXT + STOP)
    await delay(10_000)
    wire.send(usageFrame() + DONE)
    wire.end()
  },
  flood,
  'flood-for-long': flood,
  'slow-whole': async (call) => {
    await delay(4_000)
    await sound(call)
  },
}

interface HangUp {
  readonly stage: string
  readonly model: string
  readonly stream: boolean
  /** What the client must have heard before it leaves; absent: the provider must have been asked. */
  readonly after?: string
  readonly expected: string
}

const GONE = 'let go'
const WHOLE_ROW = 'alpha 7+5, receipt'

const HANG_UPS: readonly HangUp[] = [
  {
    stage: 'failure 12: while the provider has not answered',
    model: 'silent',
    stream: true,
    expected: `${GONE} | no row`,
  },
  {
    stage: 'failure 12: once its response has begun, while the provider has not answered',
    model: 'silent',
    stream: true,
    after: 'HTTP/1.1 200',
    expected: `${GONE} | no row`,
  },
  {
    stage: 'failure 02, 12: while the provider is silent after its headers',
    model: 'accepted',
    stream: true,
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+0, no receipt`,
  },
  {
    stage: 'failure 01: in the middle of a stream',
    model: 'begun',
    stream: true,
    after: 'Hello ',
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+2, no receipt`,
  },
  {
    stage: 'failure 01: after reasoning that it did not want to see, which is billed',
    model: 'thinking',
    stream: true,
    after: 'Hello ',
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+1000, no receipt`,
  },
  {
    stage: 'failure 01: after text in digits, each of which is billed as a token',
    model: 'digits',
    stream: true,
    after: 'Hello ',
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+11, no receipt`,
  },
  {
    stage: 'failure 01: after counts of one choice each, where the text of both is billed',
    model: 'counts-of-choices',
    stream: true,
    after: 'Hello ',
    expected: `${GONE} | alpha 7+14, no receipt`,
  },
  {
    stage: 'failure 01: after a further choice, which is billed',
    model: 'further-choices',
    stream: true,
    after: 'Hello ',
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+1000, no receipt`,
  },
  {
    stage: 'failure 01: after the last delta',
    model: 'all-said',
    stream: true,
    after: 'the first.',
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+7, no receipt`,
  },
  {
    stage: 'failure 01: after the finish reason, before usage',
    model: 'finished',
    stream: true,
    after: 'the first.',
    expected: `${GONE} | alpha ${PROMPT_ESTIMATE}+7, no receipt`,
  },
  {
    stage: 'after [DONE]',
    model: 'quick',
    stream: true,
    after: '[DONE]',
    expected: `${GONE} | ${WHOLE_ROW}`,
  },
  {
    stage: 'while a synchronous answer is made, which is billed',
    model: 'slow-whole',
    stream: false,
    expected: `${GONE} | ${WHOLE_ROW}`,
  },
]

/** Each trial has a customer of its own, and finds its provider call by this mark in the body. */
function bodyOf(model: string, stream: boolean, mark: string): string {
  return JSON.stringify({
    model,
    stream,
    include_reasoning: false,
    messages: [{ role: 'user', content: PROMPT }],
    user: mark,
  })
}

async function begin(world: World, customer: Customer, model: string, stream: boolean) {
  const client = await RawClient.connect(world.stack.local.base_url)
  const body = bodyOf(model, stream, customer.id)
  const headers = { authorization: `Bearer ${customer.key}`, 'content-length': body.length }
  client.send(rawRequest('POST', '/v1/chat/completions', headers, body))
  return client
}

const callOf = (world: World, model: string, customer: Customer) =>
  world.provider.calls(model).find((call) => call.body.includes(customer.id))

async function until(condition: () => boolean, timeoutMs = 60_000): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!condition() && performance.now() < deadline) await delay(10)
  return condition()
}

function hangUpTrial(hangUp: HangUp, by: 'FIN' | 'RST'): Trial<World> {
  const { stage, model, stream, after, expected } = hangUp
  return {
    name: `a hang-up ${stage} (${by})`.replace(/^(a hang-up) (failure [\d, ]+): /, '$2: $1 '),
    expected,
    run: async (world) => {
      const customer = await world.newCustomer()
      const client = await begin(world, customer, model, stream)
      if (after === undefined) {
        await until(() => callOf(world, model, customer) !== undefined)
        // What the provider sends at once has to have reached the router. Of a silent one nothing is waited for, so that the
        // client mostly leaves before its response has begun.
        if (model !== 'silent') await delay(1_000)
      } else if (!(await client.hears(after))) return `never heard ${after}`
      if (by === 'FIN') client.leave()
      else client.reset()
      const call = callOf(world, model, customer)
      const gone = await until(() => call?.wire.over ?? false, LET_GO_WITHIN_MS)
      const wanted = expected.split(' | ')[1]
      const ledger = await settledLedger(world, customer, (seen) => seen === wanted)
      return `${gone ? GONE : 'still held'} | ${ledger}`
    },
  }
}

function halfSentTrial(by: 'FIN' | 'RST'): Trial<World> {
  return {
    name: `a hang-up before admission, the body half sent (${by})`,
    expected: 'not asked | no row',
    run: async (world) => {
      const customer = await world.newCustomer()
      const client = await RawClient.connect(world.stack.local.base_url)
      const body = bodyOf('quick', true, customer.id)
      const headers = { authorization: `Bearer ${customer.key}`, 'content-length': body.length }
      client.send(rawRequest('POST', '/v1/chat/completions', headers, body.slice(0, 30)))
      await delay(500)
      if (by === 'FIN') client.leave()
      else client.reset()
      await delay(500)
      const asked = callOf(world, 'quick', customer) === undefined ? 'not asked' : 'asked'
      return `${asked} | ${await settledLedger(world, customer, (ledger) => ledger === 'no row')}`
    },
  }
}

const MIB = 1024 * 1024

/** What the front, the runtime, the worker and the daemon may hold of one unread stream. */
const MAX_HELD_BYTES = 48 * MIB

/** From the provider to the client. */
const CONNECTIONS = 4

/** What the kernel may hold beside that: it gives a connection more the more there is to read at a time, as on a busy machine. */
function kernelBytes(): number {
  const largest = ['tcp_rmem', 'tcp_wmem'].map((name) => {
    const sizes = readFileSync(`/proc/sys/net/ipv4/${name}`, 'utf8').trim().split(/\s+/)
    return Number(sizes.at(-1))
  })
  return CONNECTIONS * largest.reduce((sum, bytes) => sum + bytes, 0)
}

/** What a process may grow by, with what its heap takes before it is collected, also for the trials at the same time: 52 to 57 MiB were seen. */
const MAX_GROWTH_BYTES = 96 * MIB

function residentBytes(pid: number): number {
  return 1024 * Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** The value of a counter once it has been the same for a second; undefined: half a minute did not suffice. */
async function settled(counter: () => number): Promise<number | undefined> {
  let last = Number.NaN
  for (let checks = 0; checks < 30; checks += 1) {
    if (last === counter()) return last
    last = counter()
    await delay(1_000)
  }
  return undefined
}

const SLOW_READER: Trial<World> = {
  name: 'a reader that stops reading: the provider has to stop too, and memory stays',
  expected: 'provider stopped, memory bounded | let go',
  run: async (world) => {
    const customer = await world.newCustomer()
    const pids = Object.values(world.stack.local.pids)
    const before = pids.map(residentBytes)
    const client = await begin(world, customer, 'flood', true)
    await client.hears('yyyy')
    client.pause()
    const wire = callOf(world, 'flood', customer)?.wire
    const taken = (await settled(() => wire?.bytesTaken ?? 0)) ?? Number.POSITIVE_INFINITY
    const grown = Math.max(...pids.map((pid, index) => residentBytes(pid) - (before[index] ?? 0)))
    client.reset()
    const gone = await until(() => wire?.over ?? false, LET_GO_WITHIN_MS)
    return [
      `provider ${taken < MAX_HELD_BYTES + kernelBytes() ? 'stopped' : `sent ${taken} bytes`}, `,
      `memory ${grown < MAX_GROWTH_BYTES ? 'bounded' : `grew by ${grown} bytes`} | `,
      gone ? GONE : 'still held',
    ].join('')
  },
}

const ENDLESS_READER: Trial<World> = {
  name: 'a reader that never reads on: the stream ends with its time, and is billed',
  expected: 'let go | billed once, nothing reserved',
  long: true,
  run: async (world) => {
    const customer = await world.newCustomer()
    const client = await begin(world, customer, 'flood-for-long', true)
    await client.hears('yyyy')
    client.pause()
    const wire = callOf(world, 'flood-for-long', customer)?.wire
    const gone = await until(() => wire?.over ?? false, TIMEOUTS.stream_ms + LET_GO_WITHIN_MS)
    const one = /^alpha \d+\+\d+, no receipt$/
    const ledger = await settledLedger(world, customer, (seen) => one.test(seen))
    client.reset()
    return `${gone ? GONE : 'still held'} | ${one.test(ledger) ? 'billed once, nothing reserved' : ledger}`
  },
}

/** @param pinned as that of the world */
function hangUpFamily(name: string, pinned: boolean | undefined, crowded = false): AnyFamily {
  return family({
    name,
    trials: [
      halfSentTrial('FIN'),
      halfSentTrial('RST'),
      ...HANG_UPS.flatMap((hangUp) => [hangUpTrial(hangUp, 'FIN'), hangUpTrial(hangUp, 'RST')]),
      SLOW_READER,
      ENDLESS_READER,
    ],
    atATime: 8,
    open: () => {
      const routes = Object.entries(SCRIPTS).map(([model, script]) => {
        return { model, script, at: 'alpha' as const }
      })
      const options = { timeouts: TIMEOUTS, ...(pinned !== undefined && { pinned }) }
      return crowded ? openCrowdedWorld(routes, options) : openWorld(routes, options)
    },
    close: (world) => world.close(),
  })
}

export const HANG_UP_FAMILY = hangUpFamily('clients that leave or do not read', false)

/** The same clients where the daemon writes the chunks, and the runtime moves them. */
export const PINNED_HANG_UP_FAMILY = hangUpFamily(
  'clients that leave or do not read, over pinned egress',
  true,
)

/** The same to a provider without attestation. */
export const CARRIED_HANG_UP_FAMILY = hangUpFamily(
  'clients that leave or do not read, in calls that the daemon carries without attestation',
  undefined,
)

/** The same beside so many streams that the chunks of all are joined. */
export const CROWDED_HANG_UP_FAMILIES: readonly AnyFamily[] = [false, true].map((pinned) =>
  hangUpFamily(
    `clients that leave or do not read, among many streams${pinned ? ' over pinned egress' : ''}`,
    pinned,
    true,
  ),
)
