import { readFileSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { firstCustomer, type FirstCustomer } from '../../src/host/stack/first-customer.ts'
import { readSettings } from '../../src/host/stack/settings.ts'
import { openStateDir } from '../../src/host/stack/state-dir.ts'
import { startWithoutWorker, type WithoutWorker } from '../../src/host/stack/without-worker.ts'
import { completionIn, errorOf, usageOf } from '../support/answers.ts'
import { startMiniflare, type MiniflareHost } from '../support/miniflare.ts'
import { temporaryDirectory } from '../support/stack.ts'

const DAY_MS = 86_400_000

const state = openStateDir(temporaryDirectory())
let others: WithoutWorker
let host: MiniflareHost
let customer: FirstCustomer
let admin: AdminApi

beforeAll(async () => {
  others = await startWithoutWorker(readSettings({}), state, () => {})
  host = await startMiniflare(readFileSync(others.bundlePath, 'utf8'), others.link, {
    engine: 'd1',
  })
  admin = new AdminApi(host.url, others.adminToken)
  customer = await firstCustomer(state, host.url, others.adminToken)
})
afterAll(async () => {
  await host.stop()
  await others.stop()
  rmSync(state.path, { recursive: true, force: true })
})

function request(path: string, body?: object): Promise<Response> {
  return fetch(host.url + path, {
    headers: { authorization: `Bearer ${customer.apiKey}` },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
}

async function receiptOfOneChat(): Promise<string> {
  const messages = [{ role: 'user', content: 'Hello!' }]
  const answer = await request('/v1/chat/completions', { model: 'glm-5', messages })
  expect(answer.status).toBe(200)
  return completionIn(await answer.text()).service.receipt_id ?? ''
}

describe('the router on D1', () => {
  test('serves, bills and keeps receipts', async () => {
    const id = await receiptOfOneChat()
    expect((await request(`/v1/receipts/${id}`)).status).toBe(200)
    const { data } = await usageOf(await request('/v1/usage?limit=1'))
    expect(data[0]).toMatchObject({ receipt_id: id })
  })

  test('is swept by its cron trigger', async () => {
    const id = await receiptOfOneChat()
    const expiry = Date.now() + 15 * DAY_MS
    expect(await host.cron(new Date(expiry))).toMatchObject({ outcome: 'ok' })
    const swept = { released: 0, expired: 0, cleared: 0 }
    const later = new Date(expiry).toISOString()
    expect(await admin.call('POST', '/admin/maintenance', { now: later })).toEqual(swept)
    const answer = await request(`/v1/receipts/${id}`)
    expect(answer.status).toBe(410)
    expect((await errorOf(answer)).code).toBe('expired')
  })
})
