import { readFileSync } from 'node:fs'
import { createServer, connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Agent, fetch as undiciFetch } from 'undici-7'
import { createClient, memoryState, type Client } from '../src/client/index.ts'
import { readLocalFile } from '../src/host/stack/local-file.ts'

/**
 * `npm run bench:client`: measures the time that the client library adds to a request, on the stack that `npm start`
 * runs. Warm requests alternate with and without the library. Cold requests go through a proxy with a known delay,
 * which shows how many round trips they wait for.
 */

const { values } = parseArgs({ options: { state: { type: 'string', default: '.state' } } })
const local = readLocalFile(process.env['STATE_DIR'] ?? values.state)
const rootKey: unknown = JSON.parse(readFileSync(local.root_key, 'utf8'))

const WARM_REQUESTS = 300
/** Each cold request needs an attestation report, and a router makes at most sixty a minute. */
const COLD_REQUESTS = 8
const ONE_WAY_MS = 100

type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body: string },
) => Promise<{ readonly status: number; text(): Promise<string> }>

const REQUEST = {
  method: 'POST',
  headers: { authorization: `Bearer ${local.api_key}`, 'content-type': 'application/json' },
  body: JSON.stringify({
    model: 'glm-5',
    messages: [{ role: 'user', content: 'x'.repeat(2_000) }],
  }),
}

function clientOf(baseURL: string, transport: 'tls' | 'ehbp'): Client {
  const policy = { allowSimulated: true }
  return createClient({ baseURL, rootKey, transport, policy, state: memoryState() })
}

/** A `fetch` that trusts any certificate, as the baseline, and a function that closes its connections. */
function plain(): { readonly fetch: Fetch; close(): Promise<void> } {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  const plainFetch: Fetch = (url, init) =>
    undiciFetch(url, { ...init, dispatcher, redirect: 'manual' })
  return { fetch: plainFetch, close: () => dispatcher.close() }
}

async function timed(send: Fetch, origin: string): Promise<number> {
  const before = performance.now()
  const answer = await send(`${origin}/v1/chat/completions`, REQUEST)
  await answer.text()
  if (answer.status !== 200) throw new Error(`the router answers ${answer.status}`)
  return performance.now() - before
}

const at = (times: readonly number[], quantile: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * quantile)] ?? 0

async function warm(transport: 'tls' | 'ehbp', origin: string): Promise<void> {
  const client = clientOf(origin, transport)
  const other = plain()
  const [with_, without]: [number[], number[]] = [[], []]
  for (let i = -20; i < WARM_REQUESTS; i++) {
    const pinned = await timed((url, init) => client.fetch(url, init), origin)
    const bare = await timed(other.fetch, origin)
    if (i >= 0) with_.push(pinned)
    if (i >= 0) without.push(bare)
    await client.receipts.settled()
  }
  await Promise.all([client.close(), other.close()])
  const line = [0.1, 0.5].map((quantile) => {
    const [slow, fast] = [at(with_, quantile), at(without, quantile)]
    const added = (slow - fast).toFixed(2)
    return `p${quantile * 100} ${slow.toFixed(2)} ms, ${fast.toFixed(2)} without: ${added} added`
  })
  console.log(`warm, ${transport}: ${line.join('; ')}`)
}

let sources = 1

/**
 * Opens a proxy port that delays both directions. It uses a source address of its own, because routers limit reports by
 * source address.
 */
async function slowed({ hostname: host, port, protocol }: URL, oneWayMs: number) {
  const localAddress = `127.0.0.${++sources}`
  const server = createServer((client) => {
    const onward = connect({ host, port: Number(port), localAddress })
    for (const [from, to] of [
      [client, onward],
      [onward, client],
    ] as const) {
      from.on('data', (chunk) => later(oneWayMs, to, () => to.write(chunk)))
      from.on('end', () => later(oneWayMs, to, () => to.end()))
      from.on('error', () => to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { origin: `${protocol}//127.0.0.1:${address.port}`, close: () => server.close() }
}

function later(ms: number, to: Socket, act: () => void): void {
  setTimeout(() => {
    if (!to.destroyed) act()
  }, ms)
}

/** The time that a client's first request takes more than one over a plain connection, ms. */
async function coldAdded(transport: 'tls' | 'ehbp', target: URL, oneWayMs: number) {
  const { origin, close } = await slowed(target, oneWayMs)
  const added: number[] = []
  for (let i = 0; i < COLD_REQUESTS; i++) {
    const client = clientOf(origin, transport)
    const proven = await timed((url, init) => client.fetch(url, init), origin)
    await client.close()
    const other = plain()
    added.push(proven - (await timed(other.fetch, origin)))
    await other.close()
  }
  close()
  return at(added, 0)
}

async function cold(transport: 'tls' | 'ehbp', address: string): Promise<void> {
  const target = new URL(address)
  const [near, far] = [
    await coldAdded(transport, target, 0),
    await coldAdded(transport, target, ONE_WAY_MS),
  ]
  const trips = ((far - near) / (2 * ONE_WAY_MS)).toFixed(2)
  console.log(
    `cold, ${transport}: ${trips} round trips added, and ${near.toFixed(0)} ms of work on both sides`,
  )
}

await warm('tls', local.tls_base_url)
await warm('ehbp', local.base_url)
await cold('tls', local.tls_base_url)
await cold('ehbp', local.base_url)
