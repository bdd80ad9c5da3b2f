import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { errorSchema, usageOf } from '../support/answers.ts'
import { chatAs, newCustomer, type TestCustomer } from '../support/customer.ts'
import type { CarrierOrder } from '../support/mortal-carrier.ts'
import { ADMIN_TOKEN, startServe, type Serving } from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

/**
 * Two workers, and two threads of the daemon that carry for them and sign: one of these runs out of memory, or stands still,
 * in the middle of a call. Its worker can then sign no receipt, so another provider would be of no use to the request.
 */

const pricing = { currency: 'eur', input_per_mtok: 100, output_per_mtok: 1_000 }
const route = { upstream_model: 'zai-org/GLM-5', type: 'chat', pricing }

const LATE = 240_000

/** One for each death, since a route that dies twice in a row is held to be its cause. */
const VICTIMS = [
  'out of memory, answered',
  'out of memory, begun',
  'frozen, answered',
  'frozen, begun',
  'out of room, answered',
  'out of room, begun',
].map(modelOf)

/** The one that ends its carrier again and again. */
const KILLER = 'killer'

function modelOf(death: string): string {
  return death.replaceAll(/\W+/g, '-')
}

const CONFIG = {
  service: {
    name: 'r',
    trust_bundle_url: TRUST_BUNDLE_URL,
    allow_simulated: true,
    allow_unattested: ['vega'],
    workers: 2,
    // Much longer than a frozen thread is given, also on a slow machine.
    timeouts: { headers_ms: LATE, first_delta_ms: LATE, idle_ms: LATE, stream_open_ms: LATE },
  },
  providers: {
    nova: {
      base_url: 'https://standin.localhost/nova/v1',
      attestation: {
        adapter: 'envelope',
        root_key: { standin: 'release root' },
        environments: ['local'],
      },
    },
    vega: {
      base_url: 'http://standin.localhost/vega/v1',
      attestation: { adapter: 'none' },
    },
  },
  routes: [
    { model_key: 'pinned', provider: 'nova', ...route },
    ...[...VICTIMS, KILLER].flatMap((model_key) => [
      { model_key, provider: 'nova', ...route },
      { model_key, provider: 'vega', ...route },
    ]),
  ],
}

/** Longer than the supervisor waits for a sign of life. */
const PATIENCE = 300_000

let directory: string
let orders: string
let router: Serving
let customer: TestCustomer

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-orders-'))
  // The daemon may run under an account of its own.
  chmodSync(directory, 0o777)
  orders = join(directory, 'order.json')
  const preload = new URL('../support/mortal-carriers.ts', import.meta.url)
  const env = { NODE_OPTIONS: `--import=${preload.href}`, CARRIER_ORDERS: orders }
  router = await startServe({ config: CONFIG, env })
  const admin = new AdminApi(router.at.http_url, ADMIN_TOKEN)
  await until(async () =>
    JSON.stringify(await admin.call('GET', '/admin/providers').catch(() => '')).includes(
      '"verified"',
    ),
  )
  customer = await newCustomer(address(), { balance_eur: '100.00' })
}, PATIENCE)
afterAll(async () => {
  await router?.remove()
  rmSync(directory, { recursive: true, force: true })
})

const address = () => ({ baseUrl: router.at.http_url, adminToken: ADMIN_TOKEN })

function order(what: CarrierOrder): void {
  writeFileSync(`${orders}.new`, JSON.stringify(what))
  renameSync(`${orders}.new`, orders)
}

/** On a connection of its own, so that the kernel chooses its worker. */
async function ask(model: string, stream: boolean): Promise<{ status: number; text: string }> {
  const headers = { connection: 'close' }
  const answer = await chatAs(address(), customer, { model, stream, max_tokens: 100 }, { headers })
  return { status: answer.status, text: await answer.text() }
}

/** What the customer was billed for so far. */
async function billed() {
  const { balance_eur: balance, reserved_eur: reserved } = await customer.show()
  const headers = { authorization: `Bearer ${customer.key}` }
  const { total_count: rows } = await usageOf(await router.fetch('/v1/usage', { headers }))
  return { balance, reserved, rows }
}

/** How often the supervisor was told this. */
const told = (event: 'lost' | 'restored') =>
  router.output().split(`enclave  carrier ${event}: number `).length - 1

/** Of every eight requests at once some come to each worker, and so to each carrier. */
async function untilBothCarry(): Promise<void> {
  await until(async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask('pinned', true)))
    return answers.every(({ status, text }) => status === 200 && text.includes('[DONE]'))
  })
}

describe.each(['out of memory', 'frozen'] as const)('A carrier that is %s', (how) => {
  test(
    'before it passes an answer on fails that request, which is not billed, and is replaced',
    async () => {
      const before = await billed()
      const [lost, restored] = [told('lost'), told('restored')]
      order({ at: 'answered', how })
      const { status, text } = await ask(modelOf(`${how}, answered`), false)
      expect(status).toBe(503)
      expect(errorSchema.parse(JSON.parse(text)).error.code).toBe('service_unavailable')
      expect(await billed()).toEqual(before)
      await until(() => told('restored') > restored)
      expect(told('lost')).toBeGreaterThan(lost)
      await untilBothCarry()
    },
    PATIENCE,
  )

  test(
    'in the middle of a stream ends it with an error, bills what was delivered once, and is replaced',
    async () => {
      const before = await billed()
      const [lost, restored] = [told('lost'), told('restored')]
      order({ at: 'begun', how })
      const { status, text } = await ask(modelOf(`${how}, begun`), true)
      expect(status).toBe(200)
      expect(text).toContain('"content":')
      expect(text).toContain('"error":')
      expect(text).not.toContain('[DONE]')
      const { reserved, rows } = await billed()
      expect(reserved).toBe('0.00')
      expect(rows).toBe(before.rows + 1)
      await until(() => told('restored') > restored)
      expect(told('lost')).toBeGreaterThan(lost)
      await untilBothCarry()
    },
    PATIENCE,
  )
})

describe('A carrier that has no room for one large object ends the daemon', () => {
  test.each([
    [
      'before it passes an answer on, which fails that request and bills nothing',
      'answered',
      false,
    ],
    ['in the middle of a stream, which ends with an error', 'begun', true],
  ] as const)(
    '%s; nothing stays reserved, and all of it serves again',
    async (_how, at, stream) => {
      const before = await billed()
      const deaths = () => router.output().split('enclave  died: signal SIGABRT').length - 1
      const died = deaths()
      order({ at, how: 'out of room' })
      const { status, text } = await ask(modelOf(`out of room, ${at}`), stream)
      expect(status).toBe(stream ? 200 : 503)
      expect(text).toContain('"error":')
      await until(async () => deaths() > died)
      await untilBothCarry()
      const { reserved } = await billed()
      expect(reserved).toBe(before.reserved)
    },
    PATIENCE,
  )
})

test(
  'A route whose calls end their carriers is served by the next one from the second time on that a worker sees it',
  async () => {
    const before = await billed()
    const statuses: number[] = []
    // Of three deaths one of the two workers has seen two.
    while (statuses.length < 3 && !statuses.includes(200)) {
      order({ at: 'answered', how: 'out of memory' })
      statuses.push((await ask(KILLER, false)).status)
      await untilBothCarry()
    }
    expect(statuses.at(-1)).toBe(200)
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set([503]))
    expect((await billed()).reserved).toBe(before.reserved)
  },
  PATIENCE,
)

test('none of the other deaths counts as a failed attempt of a route', () => {
  const logDir = join(router.stateDir, 'log')
  const logs = readdirSync(logDir).filter((name) => name.startsWith('worker'))
  expect(logs.length).toBeGreaterThan(0)
  for (const name of logs) {
    const failed = readFileSync(join(logDir, name), 'utf8').match(/"attempt_failed".*/g) ?? []
    // A daemon that has just been started has not verified the provider yet.
    expect(
      failed.filter(
        (line) => !line.includes('"failure":"attestation_failed"') && !line.includes(KILLER),
      ),
    ).toEqual([])
  }
})
