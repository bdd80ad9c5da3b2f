import { readFileSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { firstCustomer, type FirstCustomer } from '../../src/host/stack/first-customer.ts'
import { readSettings } from '../../src/host/stack/settings.ts'
import { openStateDir } from '../../src/host/stack/state-dir.ts'
import { startWithoutWorker, type WithoutWorker } from '../../src/host/stack/without-worker.ts'
import { startMiniflare, type MiniflareHost } from '../support/miniflare.ts'
import { temporaryDirectory } from '../support/stack.ts'

const state = openStateDir(temporaryDirectory())
let others: WithoutWorker
let host: MiniflareHost
let customer: FirstCustomer

beforeAll(async () => {
  others = await startWithoutWorker(readSettings({}), state, () => {})
  host = await startMiniflare(readFileSync(others.bundlePath, 'utf8'), others.link)
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

describe('the same bundle under Miniflare', () => {
  test.each([false, true])('completes chats with receipts (stream: %s)', async (stream) => {
    const messages = [{ role: 'user', content: 'Hello!' }]
    const answer = await request('/v1/chat/completions', { model: 'glm-5', messages, stream })
    expect(answer.status).toBe(200)
    const id = /"receipt_id":"([0-9a-f-]{36})"/.exec(await answer.text())?.[1]
    const receipt = await request(`/v1/receipts/${id}`)
    expect(await receipt.json()).toMatchObject({ id, receipt: expect.any(String) })
  })

  test('publishes the simulated envelope', async () => {
    const answer = await request('/attestation')
    expect(await answer.json()).toMatchObject({ schema: 'service.attestation/v1' })
  })

  test('has a daemon that refuses plain HTTP', async () => {
    await expect(fetch(`http://127.0.0.1:${others.link.port}/v1/state`)).rejects.toThrow(
      'fetch failed',
    )
  })
})
