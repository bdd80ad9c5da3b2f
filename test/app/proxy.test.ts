import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gather } from '../support/gather.ts'
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.ts'
import { LOG_POLICY } from '../support/release-log.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

/** `confidential-model-router proxy` in front of a real router, used as tools use it. */

let stack: Stack
let proxy: ProxyProcess

beforeAll(async () => {
  stack = await startStack()
  const key = join(stack.stateDir, 'tool-key')
  writeFileSync(key, `${stack.local.api_key}\n`)
  proxy = await startProxyProcess(...flags(), '--allow-simulated', '--api-key-file', key)
}, 120_000)
afterAll(async () => {
  await proxy.stop()
  await stack.stop()
})

function flags(): string[] {
  const { root_key: rootKey, tls_base_url: router } = stack.local
  return ['--router', router, '--root-key', rootKey]
}

function logPolicy(): string {
  const path = join(stack.stateDir, 'log-policy.json')
  writeFileSync(path, JSON.stringify(LOG_POLICY))
  return path
}

const ASK = {
  model: 'glm-5',
  messages: [{ role: 'user' as const, content: 'a very private question' }],
}

describe('the proxy command', () => {
  test('serves a tool that has no key, whole and streamed, and prints verdicts of the receipts', async () => {
    expect(proxy.output()).toMatch(
      / is proven ON A SIMULATED PLATFORM, which proves nothing about any machine: [0-9a-f]{64}\n/,
    )
    const openai = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const whole = await openai.chat.completions.create(ASK)
    expect(whole.choices[0]?.message.content).toContain('You said: a very private question')
    const chunks = await gather(await openai.chat.completions.create({ ...ASK, stream: true }))
    expect(chunks.length).toBeGreaterThan(3)
    const lines = () =>
      proxy
        .output()
        .match(
          /POST \/v1\/chat\/completions 200 \d+ ms {2}receipt \S+ holds \(simulated platform\)/g,
        )
    await until(() => lines()?.length === 2)
    expect(lines()).toHaveLength(2)
    expect(proxy.output()).not.toContain('private')
    expect(proxy.output()).not.toContain(stack.local.api_key)
  })

  test('shows the proof and the receipts', async () => {
    const state: unknown = await (await fetch(`${proxy.url}/verification`)).json()
    expect(state).toMatchObject({
      proven: true,
      simulated: true,
      hosts: [{ environment: 'local', simulated: true }],
    })
    expect(state).toHaveProperty(['receipts', 0, 'route'])
  })

  test('streams as the router does, and lets go of the router when the tool hangs up', async () => {
    const hangUp = new AbortController()
    const answer = await fetch(`${proxy.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        ...ASK,
        messages: [{ role: 'user', content: 'Please count to 5000' }],
        stream: true,
      }),
      signal: hangUp.signal,
    })
    const first = await answer.body?.getReader().read()
    expect(new TextDecoder().decode(first?.value)).toMatch(/^data: /)
    hangUp.abort()
    const state = await fetch(`${proxy.url}/verification`)
    expect(state.status).toBe(200)
  })

  test.each([
    ['trust_bundle_environment', () => []],
    ['trust_bundle_logged', () => ['--allow-simulated', '--log-policy', logPolicy()]],
  ])('passes nothing to a router that it cannot prove, and says why: %s', async (failed, more) => {
    const strict = await startProxyProcess(...flags(), ...more())
    expect(strict.output()).toContain('not proven')
    expect(strict.output()).toContain(failed)
    const answer = await fetch(`${strict.url}/v1/models`)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({
      error: { code: 'router_not_proven', failed: expect.arrayContaining([failed]) },
    })
    expect(await strict.stop()).toBe(0)
  })
})
