import { createServer } from 'node:net'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionOf, errorOf, usageOf } from '../support/answers.ts'
import { keepAway } from '../support/kept-away.ts'
import { listen } from '../support/listen.ts'
import { runStart, startStack, temporaryDirectory, until, type Stack } from '../support/stack.ts'

function chat(stack: Stack): Promise<Response> {
  return stack.fetch('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({ model: 'glm-5', messages: [{ role: 'user', content: 'Hello!' }] }),
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('when the daemon', () => {
  let stack: Stack

  beforeAll(async () => {
    stack = await startStack()
  })
  afterAll(() => stack.stop())

  test('freezes, chat answers 503 while it is frozen and heals when it thaws', async () => {
    const { enclave } = stack.localNow().pids
    process.kill(enclave, 'SIGSTOP')
    try {
      await delay(400)
      const answer = await chat(stack)
      expect(answer.status).toBe(503)
      expect((await errorOf(answer)).code).toBe('service_unavailable')
    } finally {
      process.kill(enclave, 'SIGCONT')
    }
    await until(async () => (await chat(stack)).status === 200)
    expect((await chat(stack)).status).toBe(200)
  })

  test('dies, chat answers 503 before it is back, other endpoints serve, and all heals', async () => {
    const before = await completionOf(await chat(stack))
    const { enclave } = stack.localNow().pids
    const letBack = keepAway(stack.stateDir, 'enclave')
    await delay(300)
    const answer = await chat(stack)
    expect(answer.status).toBe(503)
    expect((await errorOf(answer)).code).toBe('service_unavailable')
    expect(stack.localNow().pids.enclave).toBe(enclave)
    expect((await stack.fetch('/v1/usage')).status).toBe(200)
    expect((await stack.fetch(`/v1/receipts/${before.service.receipt_id}`)).status).toBe(200)
    expect((await stack.fetch('/v1/models')).status).toBe(200)
    expect((await stack.fetch('/.well-known/jwks.json')).status).toBe(200)
    expect((await stack.fetch('/attestation')).status).toBe(503)

    letBack()
    await until(() => stack.localNow().pids.enclave !== enclave)
    expect(stack.localNow().pids.enclave).not.toBe(enclave)
    expect((await chat(stack)).status).toBe(200)
    expect(stack.output()).toMatch(/enclave +died: signal SIGKILL; back in 3 s/)
  })
})

describe('when the worker dies', () => {
  test('it comes back on its port with keys, rows and receipts', async () => {
    const stack = await startStack()
    const { service } = await completionOf(await chat(stack))
    const { worker } = stack.local.pids
    process.kill(worker, 'SIGKILL')
    await until(() => stack.localNow().pids.worker !== worker)
    expect((await stack.fetch(`/v1/receipts/${service.receipt_id}`)).status).toBe(200)
    expect((await usageOf(await stack.fetch('/v1/usage'))).total_count).toBe(1)
    expect(await stack.stop()).toBe(0)
  })
})

describe('the stack', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'ends every child and itself with status 0 on %s',
    async (signal) => {
      const stack = await startStack()
      const { worker, enclave, standin = 0 } = stack.local.pids
      expect(await stack.stop(signal)).toBe(0)
      expect([worker, enclave, standin].filter(isAlive)).toEqual([])
    },
  )

  test('has local.json only while it is up', async () => {
    const stateDir = temporaryDirectory()
    writeFileSync(join(stateDir, 'local.json'), '{"stale": true}')
    const stack = await startStack({ stateDir })
    expect(stack.local.base_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    await stack.stop()
    expect(existsSync(join(stateDir, 'local.json'))).toBe(false)
    rmSync(stateDir, { recursive: true })
  })

  test('ends when a part dies five times within a minute, saying which and why', async () => {
    const stack = await startStack()
    for (let death = 1; death <= 5; death++) {
      const { enclave } = stack.localNow().pids
      process.kill(enclave, 'SIGKILL')
      if (death < 5) await until(() => stack.localNow().pids.enclave !== enclave)
    }
    expect(await stack.ended).toBe(1)
    expect(stack.output()).toContain(
      'error: enclave died 5 times within a minute, at last: signal SIGKILL',
    )
    expect([stack.local.pids.worker, stack.local.pids.standin ?? 0].filter(isAlive)).toEqual([])
  })

  test('takes its children along when it is killed', async () => {
    const stack = await startStack()
    const { worker, enclave, standin = 0 } = stack.local.pids
    process.kill(enclave, 'SIGSTOP')
    await stack.stop('SIGKILL')
    await until(() => [worker, enclave, standin].filter(isAlive).length === 0)
    expect([worker, enclave, standin].filter(isAlive)).toEqual([])
  })

  test('keeps customer, key, rows and receipts over a restart', async () => {
    const stateDir = temporaryDirectory()
    const first = await startStack({ stateDir })
    const { service } = await completionOf(await chat(first))
    await first.stop()
    const second = await startStack({ stateDir })
    expect(second.local.api_key).toBe(first.local.api_key)
    expect(second.local.customer_id).toBe(first.local.customer_id)
    expect(second.local.admin_token).toBe(first.local.admin_token)
    expect((await second.fetch(`/v1/receipts/${service.receipt_id}`)).status).toBe(200)
    expect((await usageOf(await second.fetch('/v1/usage'))).total_count).toBe(1)
    await second.stop()
    rmSync(stateDir, { recursive: true })
  })
})

describe('the start command refuses with one line', () => {
  test('a second stack on one state directory', async () => {
    const stack = await startStack()
    const second = runStart({ stateDir: stack.stateDir })
    expect(await second.ended).toBe(1)
    expect(second.output().trim()).toBe(
      `error: ${stack.stateDir} is in use by another router: stop it, or name another state directory`,
    )
    expect(stack.localNow()).toEqual(stack.local)
    await stack.stop()
  })

  test.each(['PORT', 'TLS_PORT'])('a taken %s', async (variable) => {
    const occupant = createServer()
    const port = await listen(occupant)
    const { status, output } = await refusedStart({ env: { [variable]: String(port) } })
    expect(status).toBe(1)
    expect(output).toBe(
      `error: port ${port} is in use: set ${variable} to another one, or to 0 for any`,
    )
    occupant.close()
  })

  test('a configuration that is wrong, naming path and reason', async () => {
    const { status, output } = await refusedStart({ config: { service: { name: 'x' } } })
    expect(status).toBe(1)
    expect(output).toMatch(/^error: .*given-config\.json: providers: .*; routes: .*$/)
  })
})

async function refusedStart(options: { config?: unknown; env?: Record<string, string> }) {
  const stateDir = temporaryDirectory()
  const run = runStart({ ...options, stateDir })
  const status = await run.ended
  rmSync(stateDir, { recursive: true })
  return { status, output: run.output().trim() }
}
