import { tmpdir } from 'node:os'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { completionOf } from '../support/answers.ts'
import { chatAs, newCustomer, routerOf } from '../support/customer.ts'
import { localConfig } from '../support/local-config.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { makeTestAuthority } from '../support/test-authority.ts'

let server: PostgresServer
let stack: Stack
let databaseUrl: string

beforeAll(async () => {
  const authority = await makeTestAuthority()
  server = await startPostgres(tmpdir(), await authority.issue('localhost'))
  const url = new URL(await server.createDatabase())
  url.hostname = 'localhost'
  databaseUrl = url.href
  const local = localConfig()
  const config = { ...local, service: { ...local.service, database_ca: authority.rootPem } }
  stack = await startStack({ config, env: { STORAGE: 'postgres', DATABASE_URL: databaseUrl } })
})

afterAll(async () => {
  await stack?.stop()
  await server?.stop()
})

test('with service.database_ca the router serves, and each of its connections to the database is TLS', async () => {
  const customer = await newCustomer(routerOf(stack), { billing: 'postpaid' })
  const chat = { model: 'glm-5', max_tokens: 1000 }
  const answer = await completionOf(await chatAs(routerOf(stack), customer, chat))
  expect(answer.usage).toBeDefined()
  const outside = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const connections = await outside.unsafe(
    `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
     WHERE application_name = 'confidential-model-router' AND datname = current_database()`,
  )
  await outside.end()
  expect(connections.length).toBeGreaterThan(0)
  expect(connections.every(({ ssl }) => ssl === true)).toBe(true)
})
