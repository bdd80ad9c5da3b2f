import { beforeEach, describe, expect, test } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { utf8, toBase64Url } from '../../../src/protocol/bytes.ts'
import { NO_OTHER_WORKERS, type TelemetryAnswer } from '../../../src/protocol/telemetry.ts'
import { webhooksSchema } from '../../../src/protocol/webhook-config.ts'
import type { Context } from '../../../src/worker/context.ts'
import { InstanceWatch } from '../../../src/worker/metrics/instance-watch.ts'
import { Metrics } from '../../../src/worker/metrics/metrics.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { runWebhooks } from '../../../src/worker/webhooks/run.ts'
import { loggingTo } from '../../support/logging-to.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from '../../support/sqlite-database.ts'

/** Everything that is watched, as its receivers get it: each message with a signature that holds. */

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 6).toString('base64')}`
const HOUR_MS = 3_600_000

const config = webhooksSchema.parse({
  allowed_hosts: ['hooks.example'],
  endpoints: {
    ops: { url: 'https://hooks.example/ops', secret_env: 'OPS' },
    night: {
      url: 'https://hooks.example/night',
      secret_env: 'NIGHT',
      events: ['ledger.failing', 'signing.failing'],
    },
  },
})

const eventSchema = z.object({
  type: z.string(),
  timestamp: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
})

interface Received {
  readonly path: string
  readonly id: string
  readonly event: z.output<typeof eventSchema>
}

/** The world as the router sees it; the tests change it. */
interface Seen {
  proof: string
  route: 'closed' | 'open' | 'half_open'
  envelope: string | null
  daemon: boolean
  bundleEnds: number
  others: TelemetryAnswer
  storage: boolean
}

let db: SqliteDatabase
let now: number
let received: Received[]
/** Paths that do not answer. */
let deaf: Set<string>
let seen: Seen
let metrics: Metrics
let context: Context

/** Takes a message as the package that receivers use does: by its signature, or not at all. */
async function receive(url: string, init: RequestInit): Promise<Response> {
  const { pathname } = new URL(url)
  if (deaf.has(pathname)) throw new TypeError('fetch failed')
  const headers = Object.fromEntries(new Headers(init.headers))
  const body = z.string().parse(init.body)
  const secret = pathname === '/ops' ? SECRET : OTHER_SECRET
  const event = eventSchema.parse(new Webhook(secret).verify(body, headers))
  received.push({ path: pathname, id: headers['webhook-id'] ?? '', event })
  return new Response(null, { status: 204 })
}

const bundle = () => {
  const claims = JSON.stringify({ expires_at: new Date(seen.bundleEnds).toISOString() })
  return JSON.stringify({ trust_bundle_jws: `e30.${toBase64Url(utf8(claims))}.sig` })
}

beforeEach(() => {
  db = openSqlite()
  // Receivers refuse messages that are not of now.
  now = Date.now()
  received = []
  deaf = new Set()
  metrics = new Metrics()
  seen = {
    proof: 'verified',
    route: 'closed',
    envelope: 'e',
    daemon: true,
    bundleEnds: now + 1_000 * HOUR_MS,
    others: { ...NO_OTHER_WORKERS, metrics: [''] },
    storage: true,
  }
  const daemon = <Answer>(answer: Answer) =>
    seen.daemon ? Promise.resolve(answer) : Promise.reject(new Error('away'))
  const watched: Database = {
    batch: (statements) =>
      seen.storage ? db.batch(statements) : Promise.reject(new StorageUnavailable('away')),
  }
  const parts = {
    storage: sharedStorage(watched),
    now: () => now,
    newId: () => crypto.randomUUID(),
    watch: new InstanceWatch('instance'),
    link: {
      freshState: () => daemon({ envelope_sha256: seen.envelope }),
      providers: () => daemon([{ provider: 'nova', state: seen.proof }]),
      trustBundle: () => daemon(bundle()),
    },
    catalogue: { routes: [{ id: 'nova/glm-5' }] },
    health: { snapshot: () => [{ route: 'nova/glm-5', state: seen.route }] },
    metrics,
    telemetry: { exchange: async () => (seen.daemon ? seen.others : NO_OTHER_WORKERS) },
    webhookSecrets: { ops: SECRET, night: OTHER_SECRET },
    sendWebhook: receive,
    log: () => {},
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that a round takes
  context = parts as unknown as Context
})

/** One round; what it made the first endpoint receive. */
async function round(): Promise<readonly (readonly [string, unknown])[]> {
  const before = received.length
  await runWebhooks(context, config)
  return received
    .slice(before)
    .filter(({ path }) => path === '/ops')
    .map(({ event: { type, data } }) => [type, data])
}

const otherWorker = (count: number): TelemetryAnswer => {
  const text = `# HELP cmr_faults_total h\n# TYPE cmr_faults_total counter\ncmr_faults_total{part="settlement",failure="internal"} ${count}\n`
  return { ...NO_OTHER_WORKERS, metrics: ['', text] }
}

describe('a round of the webhooks', () => {
  test('reports nothing while everything is in order', async () => {
    expect(await round()).toEqual([])
    expect(await round()).toEqual([])
  })

  test('reports once that a proof was lost, and once that it is regained; a pending one reports nothing', async () => {
    await round()
    seen.proof = 'failed'
    expect(await round()).toEqual([['provider.proof_lost', { provider: 'nova' }]])
    expect(await round()).toEqual([])
    seen.proof = 'pending'
    expect(await round()).toEqual([])
    seen.proof = 'verified'
    expect(await round()).toEqual([['provider.proof_regained', { provider: 'nova' }]])
    expect(await round()).toEqual([])
  })

  test('reports that a route rests, and not again at each probe that fails', async () => {
    for (const state of ['open', 'half_open', 'open', 'half_open', 'open'] as const) {
      seen.route = state
      await round()
    }
    expect(received.map(({ event }) => event)).toMatchObject([
      { type: 'route.resting', data: { route: 'nova/glm-5' } },
    ])
    seen.route = 'closed'
    expect(await round()).toEqual([])
    seen.route = 'open'
    expect(await round()).toEqual([['route.resting', { route: 'nova/glm-5' }]])
  })

  test('reports that a route rests for another worker of the host', async () => {
    seen.others = { ...seen.others, resting: { 'nova/glm-5': 1 } }
    expect(await round()).toEqual([['route.resting', { route: 'nova/glm-5' }]])
  })

  test('reports that the trust bundle is about to expire, once for each bundle', async () => {
    seen.bundleEnds = now + 72 * HOUR_MS
    expect(await round()).toEqual([])
    now += 1
    const first = new Date(seen.bundleEnds).toISOString()
    expect(await round()).toEqual([['bundle.expiring', { expires_at: first }]])
    expect(await round()).toEqual([])
    seen.bundleEnds += HOUR_MS
    expect(await round()).toEqual([])
    now += HOUR_MS
    const second = new Date(seen.bundleEnds).toISOString()
    // Beyond five minutes the package of receivers refuses a message, so what is due is read from the outbox.
    deaf.add('/ops')
    await round()
    const rows = db.connection.prepare('SELECT type, subject FROM webhook_events').all()
    expect(rows).toContainEqual({ type: 'bundle.expiring', subject: second })
  })

  test.each([
    ['the daemon is away', { daemon: false }, 'enclave_unreachable'],
    ['the daemon has no envelope', { envelope: null }, 'no_attestation'],
  ])('tells that nothing can be signed: %s', async (_why, fault, word) => {
    await round()
    Object.assign(seen, fault)
    expect(await round()).toEqual([['signing.failing', { fault: word }]])
    expect(received.filter(({ path }) => path === '/night')).toMatchObject([
      { event: { type: 'signing.failing' } },
    ])
    expect(await round()).toEqual([])
  })

  test('reports that settlements fail, in this worker and in others of the host', async () => {
    seen.others = otherWorker(3)
    expect(await round()).toEqual([])
    const failing = [['ledger.failing', { fault: 'settlement' }]]
    seen.others = otherWorker(4)
    expect(await round()).toEqual(failing)
    expect(await round()).toEqual([])
    seen.daemon = false
    await round()
    seen.daemon = true
    expect(await round()).toEqual([])
    loggingTo(metrics.count)('settle_failed', { code: 'internal' })
    expect(await round()).toEqual(failing)
  })

  test('reports an unavailable storage without using it: each endpoint once, under one id', async () => {
    await round()
    seen.storage = false
    deaf.add('/night')
    expect(await round()).toEqual([['ledger.failing', { fault: 'storage_unavailable' }]])
    now += 10_000
    expect(await round()).toEqual([])
    deaf.delete('/night')
    await round()
    expect(await round()).toEqual([])
    const [ops, night, ...more] = received
    expect(more).toEqual([])
    expect([ops?.path, night?.path, night?.id]).toEqual(['/ops', '/night', ops?.id])
    expect(night?.event).toEqual(ops?.event)
    seen.storage = true
    await round()
    seen.storage = false
    expect(await round()).toHaveLength(1)
    expect(received.at(-1)?.id).not.toBe(ops?.id)
  })
})

describe('a message that does not arrive', () => {
  test('is tried again with the same id after each pause, also by an instance that was restarted', async () => {
    seen.proof = 'failed'
    deaf.add('/ops')
    const told: string[] = []
    context = { ...context, log: (event) => told.push(event) }
    for (const pause of [0, 4_999, 1, 59_999]) {
      now += pause
      expect(await round()).toEqual([])
    }
    expect(told).toEqual(['webhook_failed', 'webhook_failed'])
    deaf.clear()
    // Its memory is gone, pending deliveries are not; it sees the lost proof itself and reports it too.
    context = { ...context, watch: new InstanceWatch('started anew') }
    now += 1
    await round()
    const lost = received.filter(({ event }) => event.type === 'provider.proof_lost')
    expect(lost).toHaveLength(2)
    const states = db.connection
      .prepare('SELECT attempts, state FROM webhook_deliveries ORDER BY attempts DESC')
      .all()
    expect(states).toEqual([
      { attempts: 3, state: 'delivered' },
      { attempts: 1, state: 'delivered' },
    ])
  })

  test('is one of an endpoint that the configuration no longer has: it is kept apart and said', async () => {
    seen.proof = 'failed'
    deaf.add('/ops')
    await round()
    now += 5_000
    await runWebhooks(context, { ...config, endpoints: {} })
    const rows = db.connection.prepare('SELECT last_result FROM webhook_deliveries').all()
    expect(rows).toEqual([{ last_result: 'not_configured' }])
  })
})
