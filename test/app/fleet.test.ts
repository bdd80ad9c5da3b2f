import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { completionOf, usageOf } from '../support/answers.ts'
import { startPacedProvider, type PacedProvider } from '../support/paced-provider.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { ADMIN_TOKEN, chatBody, startServe, type Serving } from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { startLoad } from '../support/steady-load.ts'
import { startTcpBalancer, type TcpBalancer } from '../support/tcp-balancer.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

const LANES = 8
const WORKERS = ['worker', 'worker-2']

const keySetSchema = z.object({ keys: z.array(z.looseObject({ kid: z.string() })) })

let postgres: PostgresServer
let provider: PacedProvider
let first: Serving
let second: Serving
let balancer: TcpBalancer

beforeAll(async () => {
  ;[postgres, provider] = await Promise.all([startPostgres(), startPacedProvider()])
  const DATABASE_URL = await postgres.createDatabase()
  const config = {
    service: {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova'],
    },
    providers: { nova: { base_url: provider.baseUrl, attestation: { adapter: 'none' } } },
    routes: [
      {
        model_key: 'm',
        provider: 'nova',
        upstream_model: 'paced-20',
        type: 'chat',
        pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
      },
    ],
  }
  const env = { STORAGE: 'postgres', DATABASE_URL }
  ;[first, second] = await Promise.all([
    startServe({ config, env, args: ['--workers', '2'] }),
    startServe({ config, env }),
  ])
  balancer = await startTcpBalancer([portOf(first), portOf(second)])
})
afterAll(async () => {
  balancer.close()
  await Promise.all([first.remove(), second.remove()])
  provider.close()
  await postgres.stop()
})

function portOf(router: Serving): number {
  return Number(new URL(router.at.http_url).port)
}

async function kidsOf(router: Serving): Promise<string[]> {
  const { keys } = keySetSchema.parse(await (await router.fetch('/.well-known/jwks.json')).json())
  return keys.map(({ kid }) => kid).toSorted()
}

/** How many requests of an endpoint a worker of the first has answered, as its log says. */
function answeredBy(worker: string, endpoint: string): number {
  const log = readFileSync(join(first.stateDir, 'log', `${worker}.log`), 'utf8')
  const lines = log.split('\n').filter((line) => line.includes('"event":"request"'))
  return lines.filter((line) => line.includes(`"endpoint":"${endpoint}"`)).length
}

describe('two stacks on one PostgreSQL', () => {
  test('open each other’s customers, receipts and keys', async () => {
    const answer = await completionOf(await first.fetch('/v1/chat/completions', chatBody('m')))
    await completionOf(await second.fetch('/v1/chat/completions', chatBody('m')))
    const theirs = { authorization: `Bearer ${first.apiKey}` }
    const path = `/v1/receipts/${answer.service.receipt_id}`
    expect((await second.fetch(path, { headers: theirs })).status).toBe(200)
    expect(await kidsOf(first)).toHaveLength(2)
    expect(await kidsOf(second)).toEqual(await kidsOf(first))
  })

  test('run several workers behind one socket', () => {
    expect(Object.keys(first.at.parts).toSorted()).toEqual(['enclave', 'worker', 'worker-2'])
  })

  test('are scraped in one answer, whichever worker gives it', async () => {
    const ask = async (path: string, key: string) => {
      const headers = { authorization: `Bearer ${key}`, connection: 'close' }
      const answer = await fetch(first.at.http_url + path, { headers })
      return { status: answer.status, text: await answer.text() }
    }
    let asked = 0
    const askAll = async () => {
      const all = Array.from({ length: 8 }, () => ask('/v1/models/unheard-of', first.apiKey))
      const statuses = (await Promise.all(all)).map(({ status }) => status)
      expect(new Set(statuses)).toEqual(new Set([404]))
      asked += all.length
    }
    await until(async () => {
      await askAll()
      return WORKERS.every((worker) => answeredBy(worker, 'models.retrieve') > 0)
    })
    const shares = () => WORKERS.map((worker) => answeredBy(worker, 'models.retrieve'))
    expect(shares()).not.toContain(0)
    const sum = () => shares().reduce((total, share) => total + share, 0)
    await expect.poll(sum, { timeout: 30_000 }).toBe(asked)

    const scrape = async () => {
      const { text } = await ask('/admin/metrics', ADMIN_TOKEN)
      const counted =
        /^cmr_requests_total\{endpoint="models.retrieve",status="404",code="model_not_found"\} (\d+)$/m
      return Number(counted.exec(text)?.[1])
    }
    await expect.poll(scrape, { timeout: 30_000 }).toBe(asked)
    // The one that gave the whole sum has reported its own share, so from now on the other gives it too.
    const before = WORKERS.map((worker) => answeredBy(worker, 'admin.metrics'))
    const since = () =>
      WORKERS.map((worker, index) => answeredBy(worker, 'admin.metrics') - (before[index] ?? 0))
    await until(async () => {
      expect(await scrape()).toBe(asked)
      return !since().includes(0)
    })
    expect(since()).not.toContain(0)
  })

  test('lose no more than what was in flight on the one that is killed', async () => {
    const url = `http://127.0.0.1:${balancer.port}/v1/chat/completions`
    const headers = { authorization: `Bearer ${first.apiKey}`, connection: 'close' }
    const ask = async () => {
      const answer = await fetch(url, { ...chatBody('m'), headers })
      await answer.text()
      return answer.status
    }
    const during = startLoad(LANES, ask)
    await during.further(5 * LANES)
    expect(balancer.open().get(portOf(second))).toBeGreaterThan(0)
    second.signal('SIGKILL')
    await second.ended
    await during.further(5 * LANES)
    const statuses = await during.stop()
    const answered = statuses.filter((status) => status === 200).length
    expect(answered).toBeGreaterThan(20)
    // Each connection has one request in flight.
    expect(statuses.length - answered).toBeLessThanOrEqual(LANES)

    const after = startLoad(LANES, ask)
    await after.further(5 * LANES)
    const later = await after.stop()
    expect(later.filter((status) => status !== 200)).toEqual([])
    const rows = await usageOf(await first.fetch('/v1/usage?limit=1'))
    expect(rows.total_count).toBeGreaterThanOrEqual(answered + later.length)
  })

  test('keep the keys of the dead one, so that its receipts can be checked', async () => {
    expect(await kidsOf(first)).toHaveLength(2)
  })
})
