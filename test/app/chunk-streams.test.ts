import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { content, DONE, EVENT_STREAM, ROLE, sound, STOP, usageFrame } from '../faults/answers.ts'
import { settledLedger } from '../faults/ledger.ts'
import { openWorld, type Customer, type StackWorld } from '../faults/world.ts'
import { errorSchema } from '../support/answers.ts'
import type { Script } from '../support/fault-provider.ts'
import { openRequestsOf } from '../support/open-requests.ts'
import { RawClient, rawRequest } from '../support/raw-client.ts'
import { until } from '../support/stack.ts'
import { standstill } from '../support/standstill.ts'

/** Streams whose chunks come from the daemon over the one connection for all, and what they must not do to each other. */

const MIB = 1024 * 1024

/** Ends the streams that have begun. */
const finish: (() => void)[] = []

const begun: Script = ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE + content('Hello '))
  finish.push(() => {
    wire.send(STOP + usageFrame() + DONE)
    wire.end()
  })
}

/** Deltas without end, as fast as they are taken. */
const flood: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  while (!wire.over) await wire.sendSlowly(content('y'.repeat(64 * 1024)))
}

/** More in a single event than all buffers on the way take. */
const large: Script = ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE + content('z'.repeat(15 * MIB)) + STOP + usageFrame() + DONE)
  wire.end()
}

let world: StackWorld
beforeAll(async () => {
  const scripts = { begun, flood, large, sound }
  const routes = Object.entries(scripts).map(([model, script]) => {
    return { model, script, at: 'alpha' as const }
  })
  const timeouts = {
    headers_ms: 30_000,
    first_delta_ms: 30_000,
    idle_ms: 60_000,
    stream_headers_after_ms: 30_000,
    stream_open_ms: 60_000,
    stream_ms: 15_000,
  }
  world = await openWorld(routes, { timeouts })
  await until(shareConnection)
}, 120_000)
afterAll(() => world.close())

const openRequests = () => openRequestsOf(world.stack)

function bodyOf(model: string): string {
  return JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello!' }] })
}

function chat({ key }: Customer, model: string): Promise<Response> {
  return world.stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: bodyOf(model),
  })
}

async function client({ key }: Customer, model: string): Promise<RawClient> {
  const opened = await RawClient.connect(world.stack.local.base_url)
  const body = bodyOf(model)
  const headers = { authorization: `Bearer ${key}`, 'content-length': body.length }
  opened.send(rawRequest('POST', '/v1/chat/completions', headers, body))
  return opened
}

/** So many streams of which each has begun. */
async function held(count: number): Promise<readonly RawClient[]> {
  const customer = await world.newCustomer()
  const clients = await Promise.all(Array.from({ length: count }, () => client(customer, 'begun')))
  await Promise.all(clients.map((each) => each.hears('Hello ')))
  return clients
}

/** The open connections of the daemon, without those to providers. */
function linkConnections(): number {
  const { enclave } = world.stack.localNow().pids
  const files = `/proc/${enclave}/fd`
  const sockets = new Set(readdirSync(files).map((fd) => nameOf(join(files, fd))))
  const rows = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1)
  return rows.filter((row) => {
    const [, , remote = '', state, , , , , , inode] = row.trim().split(/\s+/)
    const isToProvider = Number.parseInt(remote.split(':')[1] ?? '', 16) === world.provider.port
    return state === ESTABLISHED && !isToProvider && sockets.has(`socket:[${inode}]`)
  }).length
}

const ESTABLISHED = '01'

function nameOf(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    // It was closed meanwhile.
    return ''
  }
}

const STREAMS = 30

/** Whether streams that are open side by side have no connections of their own to the daemon. */
async function shareConnection(): Promise<boolean> {
  const clients = await held(STREAMS)
  const connections = linkConnections()
  for (const end of finish.splice(0)) end()
  await Promise.all(clients.map((each) => each.hears('[DONE]')))
  for (const each of clients) each.leave()
  await until(async () => (await openRequests()) === 0)
  return connections < STREAMS / 2
}

/** The code of the error that is a stream's last event. */
function lastError(text: string): string {
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  return errorSchema.parse(JSON.parse(last.replace(/^data: /, ''))).error.code
}

/** ceil(6 bytes / 3) + 16: of a stream that is cut, the router's own count of the prompt. */
const PROMPT = 18

test('streams side by side have no connections of their own to the daemon', async () => {
  // A call goes over HTTP while the one for messages is late, and its connection stays open for some seconds.
  await expect.poll(shareConnection, { timeout: 60_000 }).toBe(true)
})

test('clients that reset their connections while the provider is silent are noticed before the end of their time, and no connection is opened to ask for their records', async () => {
  const clients = await held(STREAMS)
  const before = linkConnections()
  for (const each of clients) each.reset()
  finish.splice(0)
  // A fraction of what a stream may last.
  await expect.poll(openRequests, { timeout: 8_000 }).toBe(0)
  expect(linkConnections() - before).toBeLessThan(STREAMS / 3)
  expect(world.provider.calls('begun').every(({ wire }) => wire.over)).toBe(true)
})

test('clients that do not read keep nobody from reading, and are billed and let go at the end of their time', async () => {
  const lazy = await Promise.all(Array.from({ length: 8 }, () => world.newCustomer()))
  const clients = await Promise.all(lazy.map((customer) => client(customer, 'flood')))
  onTestFinished(() => {
    for (const each of clients) each.reset()
  })
  for (const each of clients) each.pause()
  const taken = () =>
    world.provider.calls('flood').reduce((bytes, { wire }) => bytes + wire.bytesTaken, 0)
  await standstill(taken)
  const busy = await world.newCustomer()
  const answers = await Promise.all(Array.from({ length: 20 }, () => chat(busy, 'sound')))
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  expect(texts.filter((text) => text.endsWith('data: [DONE]\n\n'))).toHaveLength(20)
  expect(await openRequests()).toBe(clients.length)
  await until(async () => (await openRequests()) === 0)
  const row = `alpha ${PROMPT}+1000, no receipt`
  const rows = lazy.map((customer) => settledLedger(world, customer, (seen) => seen === row))
  expect(await Promise.all(rows)).toEqual(lazy.map(() => row))
  expect(world.provider.calls('flood').every(({ wire }) => wire.over)).toBe(true)
})

const endedSchema = z.object({ event: z.literal('link_chunks_ended'), count: z.int() })

/** The numbers of streams that were open when a connection for chunks ended. */
function lostStreams(): readonly number[] {
  const lines = readFileSync(join(world.stack.stateDir, 'log/worker.log'), 'utf8').split('\n')
  return lines
    .filter((line) => line.includes('link_chunks_ended'))
    .map((line) => endedSchema.parse(JSON.parse(line)).count)
}

test('a daemon that is killed ends each stream by an event of its own, and the next ones come over a new connection', async () => {
  const reading = await held(10)
  const lazy = await client(await world.newCustomer(), 'flood')
  onTestFinished(() => lazy.reset())
  lazy.pause()
  await standstill(() => world.provider.calls('flood').at(-1)?.wire.bytesTaken ?? 0)
  const inside = await chat(await world.newCustomer(), 'large')
  process.kill(world.stack.localNow().pids.enclave, 'SIGKILL')
  const text = await inside.text()
  expect(lastError(text)).toBe('service_unavailable')
  const heard = await Promise.all(reading.map((each) => each.hears('"code":"service_unavailable"')))
  expect(heard).toEqual(reading.map(() => true))
  for (const each of reading) each.leave()
  finish.splice(0)
  // The one that does not read is let go, too.
  await until(async () => (await openRequests()) === 0)
  expect(lostStreams()).toEqual([reading.length + 2])
  const customer = await world.newCustomer()
  await until(async () => (await chat(customer, 'sound')).status === 200)
  await until(shareConnection)
})
