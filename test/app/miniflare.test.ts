import { readFileSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildWorker } from '../../scripts/build.ts'
import type { Child } from '../../scripts/stack/child.ts'
import { firstCustomer, type FirstCustomer } from '../../scripts/stack/first-customer.ts'
import { makeLinkCertificates } from '../../scripts/stack/link-certificates.ts'
import { Parts } from '../../scripts/stack/parts.ts'
import { readRouterConfig } from '../../scripts/stack/router-config.ts'
import { readSettings } from '../../scripts/stack/settings.ts'
import { openStateDir } from '../../scripts/stack/state-dir.ts'
import { startMiniflare, type MiniflareHost } from '../support/miniflare.ts'
import { temporaryDirectory } from '../support/stack.ts'

const ADMIN_TOKEN = 'an admin token for this test'

const state = openStateDir(temporaryDirectory())
const children: Child[] = []
let linkPort: number
let host: MiniflareHost
let customer: FirstCustomer

beforeAll(async () => {
  const settings = readSettings({})
  const link = await makeLinkCertificates(Date.now())
  const bundlePath = state.file('worker.js')
  await buildWorker(bundlePath)
  const parts = new Parts({
    settings,
    state,
    config: readRouterConfig(settings.configPath),
    adminToken: ADMIN_TOKEN,
    link,
    bundlePath,
    daemonSaid: () => {},
  })
  const standin = await parts.standin()
  const enclave = await parts.enclave()
  children.push(standin.child, enclave.child)
  linkPort = enclave.ready.linkPort
  host = await startMiniflare(readFileSync(bundlePath, 'utf8'), {
    port: linkPort,
    worker: link.worker,
    serverCertPem: link.server.certPem,
  })
  customer = await firstCustomer(state, host.url, ADMIN_TOKEN)
})
afterAll(async () => {
  await host.stop()
  await Promise.all(children.map((child) => child.stop(1_000)))
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
    await expect(fetch(`http://127.0.0.1:${linkPort}/v1/state`)).rejects.toThrow('fetch failed')
  })
})
