import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { gather } from '../support/gather.ts'
import { LOG_POLICY } from '../support/release-log.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

/** `confidential-model-router proxy` in front of a real router, used as tools use it. */

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

let stack: Stack
let proxy: ChildProcess
let output = ''
let url: string

beforeAll(async () => {
  stack = await startStack()
  const key = join(stack.stateDir, 'tool-key')
  writeFileSync(key, `${stack.local.api_key}\n`)
  proxy = spawn(process.execPath, [
    PROGRAM,
    'proxy',
    ...flags(),
    '--allow-simulated',
    '--api-key-file',
    key,
  ])
  proxy.stdout?.on('data', (part: Buffer) => (output += part.toString()))
  proxy.stderr?.on('data', (part: Buffer) => (output += part.toString()))
  await until(() => output.includes('is proven') || proxy.exitCode !== null)
  url = /proxy +(http:\S+)/.exec(output)?.[1] ?? ''
})
afterAll(async () => {
  if (proxy.exitCode === null) {
    proxy.kill('SIGTERM')
    await once(proxy, 'close')
  }
  await stack.stop()
})

function flags(): string[] {
  const { root_key: rootKey, tls_base_url: router } = stack.local
  return ['--router', router, '--root-key', rootKey, '--port', '0', '--state', 'none']
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
    expect(output).toContain('is proven')
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
    const whole = await openai.chat.completions.create(ASK)
    expect(whole.choices[0]?.message.content).toContain('You said: a very private question')
    const chunks = await gather(await openai.chat.completions.create({ ...ASK, stream: true }))
    expect(chunks.length).toBeGreaterThan(3)
    await until(
      () =>
        output.match(/POST \/v1\/chat\/completions 200 \d+ ms {2}receipt \S+ holds/g)?.length === 2,
    )
    expect(
      output.match(/POST \/v1\/chat\/completions 200 \d+ ms {2}receipt \S+ holds/g),
    ).toHaveLength(2)
    expect(output).not.toContain('private')
    expect(output).not.toContain(stack.local.api_key)
  })

  test('serves curl', async () => {
    const args = [
      '-sS',
      `${url}/v1/chat/completions`,
      '-H',
      'content-type: application/json',
      '-d',
      JSON.stringify(ASK),
    ]
    const { stdout } = await promisify(execFile)('curl', args)
    expect(JSON.parse(stdout)).toHaveProperty('service.receipt_id')
  })

  test('shows the proof and the receipts', async () => {
    const state: unknown = await (await fetch(`${url}/verification`)).json()
    expect(state).toMatchObject({ proven: true, hosts: [{ environment: 'local' }] })
    expect(state).toHaveProperty(['receipts', 0, 'route'])
  })

  test('streams as the router does, and lets go of the router when the tool hangs up', async () => {
    const hangUp = new AbortController()
    const answer = await fetch(`${url}/v1/chat/completions`, {
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
    const state = await fetch(`${url}/verification`)
    expect(state.status).toBe(200)
  })

  test.each([
    ['trust_bundle_environment', () => []],
    ['trust_bundle_logged', () => ['--allow-simulated', '--log-policy', logPolicy()]],
  ])('passes nothing to a router that it cannot prove, and says why: %s', async (failed, more) => {
    const strict = spawn(process.execPath, [PROGRAM, 'proxy', ...flags(), ...more()])
    let text = ''
    for (const stream of [strict.stdout, strict.stderr]) {
      stream.on('data', (part: Buffer) => (text += part.toString()))
    }
    await until(() => text.includes('not proven'))
    expect(text).toContain(failed)
    const at = /proxy +(http:\S+)/.exec(text)?.[1] ?? ''
    const answer = await fetch(`${at}/v1/models`)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({
      error: { code: 'router_not_proven', failed: expect.arrayContaining([failed]) },
    })
    strict.kill('SIGTERM')
    expect((await once(strict, 'close'))[0]).toBe(0)
  })
})
