import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { callsOfAdminCommands } from '../support/admin-calls.ts'
import { outputOf } from '../support/run-program.ts'
import { startStack, type Stack } from '../support/stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

/** What `npm run admin -- ...` prints. */
function printed(...args: string[]): Promise<string> {
  const env = { ...process.env, STATE_DIR: stack.stateDir }
  return outputOf(['admin', ...args], { env })
}

/** The same, read. */
async function admin(...args: string[]): Promise<Record<string, string>> {
  return JSON.parse(await printed(...args))
}

function newCustomer(): Promise<Record<string, string>> {
  return admin('customers', 'create', '--name', 'n', '--billing', 'prepaid', '--balance', '10.00')
}

describe('the admin command', () => {
  test('makes, lists and shows customers', async () => {
    const made = await newCustomer()
    expect(Number(made['balance_eur'])).toBe(10)
    const shown = await admin('customers', 'show', made['id'] ?? '')
    expect(shown).toEqual(made)
    const listed = await admin('customers', 'list')
    expect(listed['data']).toContainEqual(made)
  })

  test('makes a key that works, lists it without its secret and deletes it', async () => {
    const { id = '' } = await newCustomer()
    const { key = '', key_prefix: prefix = '' } = await admin('keys', 'create', id, '--name', 'k')
    const headers = { authorization: `Bearer ${key}` }
    expect((await stack.fetch('/v1/usage', { headers })).status).toBe(200)
    const listed = await admin('keys', 'list', id)
    expect(listed['data']).toMatchObject([{ key_prefix: prefix, name: 'k' }])
    expect(JSON.stringify(listed)).not.toContain(key)
    await admin('keys', 'delete', id, prefix)
    expect((await stack.fetch('/v1/usage', { headers })).status).toBe(401)
  })

  test('suspends, changes and resumes a customer, and rotates a key', async () => {
    const { id = '' } = await newCustomer()
    const { key = '', key_prefix: prefix = '' } = await admin('keys', 'create', id, '--name', 'k')
    const ask = async (secret: string) => {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
      const body = { model: 'glm-5', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      return (await stack.fetch('/v1/chat/completions', init)).status
    }
    await admin('customers', 'suspend', id)
    expect(await ask(key)).toBe(403)
    const changed = await admin('customers', 'change', id, '--name', 'm', '--alert-balance', '2')
    expect(changed).toMatchObject({ name: 'm', alert_balance_eur: '2.00' })
    await admin('customers', 'resume', id)
    expect(await ask(key)).toBe(200)
    const rotated = await admin('keys', 'rotate', id, prefix)
    expect([await ask(key), await ask(rotated['key'] ?? '')]).toEqual([200, 200])
    const last = await admin('keys', 'rotate', id, prefix, '--grace-seconds', '0')
    expect([await ask(key), await ask(last['key'] ?? '')]).toEqual([401, 200])
  })

  test('makes named tokens that work, and shows what was done with them', async () => {
    const made = await admin('tokens', 'create', '--name', 'reader', '--scope', 'read')
    const file = join(stack.stateDir, 'named-token')
    writeFileSync(file, `${made['token']}\n`, { mode: 0o600 })
    const as = ['--base-url', stack.local.base_url, '--token-file', file]
    expect(await admin(...as, 'tokens', 'list')).toMatchObject({ data: [{ name: 'reader' }] })
    await expect(admin(...as, 'tokens', 'revoke', made['id'] ?? '')).rejects.toThrow(
      'insufficient_scope',
    )
    await admin('tokens', 'revoke', made['id'] ?? '')
    await expect(admin(...as, 'tokens', 'list')).rejects.toThrow('unauthorized')
    const { data } = await admin('audit', '--limit', '2')
    expect(data).toMatchObject([
      { action: 'tokens.revoke', target: made['id'], token_name: 'boot', status: 200 },
      { action: 'tokens.create', created: made['id'] },
    ])
  })

  test('erases a customer for good, only when confirmed', async () => {
    const { id = '' } = await newCustomer()
    const { key = '' } = await admin('keys', 'create', id, '--name', 'k')
    const headers = { authorization: `Bearer ${key}` }
    await expect(admin('customers', 'erase', id)).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("required option '--yes' not specified"),
    })
    expect((await stack.fetch('/v1/key', { headers })).status).toBe(200)
    const { ledger_id: ledgerId = '', ...erased } = await admin('customers', 'erase', id, '--yes')
    expect(erased).toEqual({ id, deleted: true })
    expect((await stack.fetch('/v1/key', { headers })).status).toBe(401)
    await expect(admin('customers', 'show', id)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"code": "not_found"'),
    })
    await admin('maintenance')
    expect(await admin('customers', 'show', ledgerId)).toMatchObject({
      id: ledgerId,
      name: '',
      balance_eur: '10.00',
      erased_at: expect.any(String),
    })
  })

  test('prints the metrics as they are, the ledger’s position and the webhooks', async () => {
    expect(await printed('metrics')).toMatch(/^# HELP cmr_requests_total /)
    expect(await admin('ledger')).toEqual({ position: expect.any(Number) })
    expect(await admin('webhooks', 'run')).toEqual({ reported: 0, delivered: 0, failed: 0 })
    const listed = ['webhooks', 'deliveries', '--state', 'failed', '--limit', '5']
    expect(await admin(...listed)).toEqual({ data: [] })
    await expect(admin('webhooks', 'deliveries', '--state', 'lost')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Allowed choices are pending, delivered, failed.'),
    })
  })

  test('pages the list of customers', async () => {
    const made = [await newCustomer(), await newCustomer()]
    const after = made[0]?.['id'] ?? ''
    const page = await admin('customers', 'list', '--limit', '1', '--after', after)
    expect(page).toEqual({ data: [made[1]], has_more: false })
  })

  test('adds a credit once for each reference', async () => {
    const { id = '' } = await newCustomer()
    const credit = ['credits', 'add', id, '--amount', '5.00', '--reference', 'r-1']
    await admin(...credit)
    const { balance_eur: balance } = await admin(...credit)
    expect(Number(balance)).toBe(15)
  })

  test('takes its token from a file that only its owner reads, or from standard input', async () => {
    const file = join(stack.stateDir, 'token-for-admin')
    writeFileSync(file, `${stack.local.admin_token}\n`, { mode: 0o600 })
    const from = ['--base-url', stack.local.base_url, '--token-file']
    expect(await admin(...from, file, 'customers', 'list')).toEqual(expect.any(Object))
    chmodSync(file, 0o644)
    await expect(admin(...from, file, 'customers', 'list')).rejects.toThrow(
      `--token-file: ${file} is open to every user (mode 0644): chmod 600 it`,
    )
    const piped = ['--base-url', stack.local.base_url, '--token-file', '-', 'customers', 'list']
    const run = spawnSync(
      process.execPath,
      [join(PROJECT_DIR, 'src/cli/main.ts'), 'admin', ...piped],
      {
        input: `${stack.local.admin_token}\n`,
        encoding: 'utf8',
      },
    )
    expect(JSON.parse(run.stdout)).toEqual(expect.any(Object))
  })

  test('takes no token as an argument, where every user of the machine could read it', async () => {
    await expect(admin('--token', 'secret', 'customers', 'list')).rejects.toThrow(
      "error: unknown option '--token'",
    )
  })

  test('runs the maintenance, at another time too', async () => {
    expect(await admin('maintenance')).toEqual(expect.any(Object))
    expect(await admin('maintenance', '--now', '2030-01-01T00:00:00Z')).toEqual(expect.any(Object))
  })

  test('shows the state of routes and providers', async () => {
    expect((await admin('routes'))['data']?.length).toBeGreaterThan(0)
    expect((await admin('providers'))['data']?.length).toBeGreaterThan(0)
  })

  test('prints a refusal on standard error and ends with status 1', async () => {
    const failed = admin('customers', 'show', 'nobody')
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('"code": "not_found"'),
    })
  })

  test('refuses an amount that is no decimal number', async () => {
    const failed = admin('credits', 'add', 'x', '--amount', '1e3', '--reference', 'r')
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('give a decimal number of euros'),
    })
  })
})

describe('the admin commands and the operator’s endpoints', () => {
  const operation = z.looseObject({
    parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).default([]),
    requestBody: z
      .object({
        content: z.record(z.string(), z.object({ schema: z.object({ $ref: z.string() }) })),
      })
      .loose()
      .optional(),
  })
  const documentSchema = z.object({
    paths: z.record(z.string(), z.record(z.string(), operation)),
    components: z.object({
      schemas: z.record(
        z.string(),
        z.looseObject({ properties: z.record(z.string(), z.unknown()).default({}) }),
      ),
    }),
  })

  test('are the same: each action, parameter and member of a body can be given', async () => {
    const { paths, components } = documentSchema.parse(
      await (await stack.fetch('/openapi.json')).json(),
    )
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    // Other files run in this process, too.
    onTestFinished(() => print.mockRestore())
    const calls = await callsOfAdminCommands()
    expect(print).toHaveBeenCalledTimes(calls.length)
    const endpoints = Object.entries(paths)
      // Sessions are for browsers.
      .filter(([path]) => path.startsWith('/admin') && path !== '/admin/session')
      .flatMap(([path, item]) =>
        Object.entries(item).map(([method, { parameters, requestBody }]) => {
          const pattern = new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`, 'i')
          const schema = requestBody?.content['application/json']?.schema.$ref.split('/').at(-1)
          const query = parameters.filter((one) => one.in === 'query').map(({ name }) => name)
          const body = Object.keys(components.schemas[schema ?? '']?.properties ?? {})
          return { name: `${method} ${path}`, pattern, query, body }
        }),
      )
    expect(endpoints.length).toBeGreaterThan(20)
    const lacking = endpoints.flatMap(({ name, pattern, query, body }) => {
      const own = calls.filter(({ method, path }) => pattern.test(`${method} ${path}`))
      if (own.length === 0) return [name]
      const given = new Set(own.flatMap((call) => [...call.query, ...call.body]))
      return [...query, ...body].filter((one) => !given.has(one)).map((one) => `${name}: ${one}`)
    })
    expect(lacking).toEqual([])
    const unknown = calls.filter(
      ({ method, path }) => !endpoints.some(({ pattern }) => pattern.test(`${method} ${path}`)),
    )
    expect(unknown).toEqual([])
  })
})
