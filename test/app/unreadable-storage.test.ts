import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completionOf } from '../support/answers.ts'
import { sqliteFiles } from '../support/crash/ledger-access.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { startStack, temporaryDirectory, type Stack } from '../support/stack.ts'

/** Storage that answers, but whose tables the router cannot read. */

/** Longer than one answer of `/healthz` holds. */
const SOON = { timeout: 5_000 }

const CHAT = { model: 'glm-5', max_tokens: 100 }

const UNAVAILABLE = {
  status: 503,
  retryAfter: '2',
  code: 'service_unavailable',
  message: 'The storage cannot be reached.',
}

async function refusalOf(response: Response): Promise<unknown> {
  const { status, headers } = response
  const { error }: { error: { code: string; message: string } } = await response.json()
  return {
    status,
    retryAfter: headers.get('retry-after'),
    code: error.code,
    message: error.message,
  }
}

const healthOf = (stack: Stack) => fetch(`${stack.local.base_url}/healthz`)

const keysOf = ({ local }: Stack, { id }: TestCustomer) =>
  fetch(`${local.base_url}/admin/customers/${id}/keys`, {
    headers: { authorization: `Bearer ${local.admin_token}` },
  })

async function expectUnavailable(stack: Stack, customer: TestCustomer): Promise<void> {
  await expect.poll(async () => (await healthOf(stack)).status, SOON).not.toBe(200)
  expect(await refusalOf(await healthOf(stack))).toEqual(UNAVAILABLE)
  expect(await refusalOf(await chatAs(routerOf(stack), customer, CHAT))).toEqual(UNAVAILABLE)
  expect(await refusalOf(await keysOf(stack, customer))).toEqual(UNAVAILABLE)
}

async function expectServed(stack: Stack, customer: TestCustomer): Promise<void> {
  await expect.poll(async () => (await healthOf(stack)).status, SOON).toBe(200)
  await completionOf(await chatAs(routerOf(stack), customer, CHAT))
}

describe('a PostgreSQL database that the router’s role cannot read', () => {
  let server: PostgresServer
  let owner: postgres.Sql
  let stack: Stack
  let customer: TestCustomer

  beforeAll(async () => {
    server = await startPostgres()
    const url = new URL(await server.createDatabase())
    owner = postgres(url.href, { max: 1, onnotice: () => {} })
    await owner.unsafe(`CREATE ROLE router_of_test LOGIN PASSWORD 'test'`)
    await owner.unsafe('CREATE SCHEMA router_tables AUTHORIZATION router_of_test')
    await owner.unsafe('ALTER ROLE router_of_test SET search_path = router_tables')
    url.username = 'router_of_test'
    url.password = 'test'
    stack = await startStack({ env: { STORAGE: 'postgres', DATABASE_URL: url.href } })
    customer = await newCustomer(routerOf(stack), { billing: 'postpaid' })
  })
  afterAll(async () => {
    await stack?.stop()
    await owner?.unsafe('DROP SCHEMA IF EXISTS router_tables, hidden CASCADE')
    await owner?.unsafe('DROP ROLE IF EXISTS router_of_test')
    await owner?.end({ timeout: 0 })
    await server?.stop()
  })

  test.each([
    [
      'whose rights are revoked',
      'REVOKE ALL ON ALL TABLES IN SCHEMA router_tables FROM router_of_test',
      'GRANT ALL ON ALL TABLES IN SCHEMA router_tables TO router_of_test',
    ],
    [
      'whose rights to the accounts are revoked',
      'REVOKE ALL ON router_tables.customers FROM router_of_test',
      'GRANT ALL ON router_tables.customers TO router_of_test',
    ],
    [
      'whose schema is not in the search path any more',
      'ALTER SCHEMA router_tables RENAME TO hidden',
      'ALTER SCHEMA hidden RENAME TO router_tables',
    ],
    [
      'of which one table is gone',
      'ALTER TABLE router_tables.api_keys RENAME TO hidden',
      'ALTER TABLE router_tables.hidden RENAME TO api_keys',
    ],
  ])(
    '%s answers 503 as one that cannot be reached, at /healthz too, and heals by itself',
    async (...[, hide, show]) => {
      await owner.unsafe(hide)
      try {
        await expectUnavailable(stack, customer)
      } finally {
        await owner.unsafe(show)
      }
      await expectServed(stack, customer)
    },
  )
})

describe.each(['durable-object', 'sqlite'])('a SQLite file of the engine %s', (storage) => {
  test('of which a table is gone answers 503 as one that cannot be reached, at /healthz too', async () => {
    const stateDir = temporaryDirectory()
    const stack = await startStack({ stateDir, env: { STORAGE: storage } })
    const run = (sql: string) => {
      for (const path of sqliteFiles(join(stateDir, 'storage'))) {
        const database = new DatabaseSync(path, { timeout: 5_000 })
        const found = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'usage_blocks'")
        if (found.get() !== undefined) database.exec(sql)
        database.close()
      }
    }
    try {
      const customer = await newCustomer(routerOf(stack), { billing: 'postpaid' })
      await expectServed(stack, customer)
      run('ALTER TABLE api_keys RENAME TO hidden')
      try {
        await expect.poll(async () => (await healthOf(stack)).status, SOON).not.toBe(200)
        expect(await refusalOf(await healthOf(stack))).toEqual(UNAVAILABLE)
        expect(await refusalOf(await keysOf(stack, customer))).toEqual(UNAVAILABLE)
      } finally {
        run('ALTER TABLE hidden RENAME TO api_keys')
      }
      await expectServed(stack, customer)
    } finally {
      await stack.stop()
      rmSync(stateDir, { recursive: true, force: true })
    }
  })
})
