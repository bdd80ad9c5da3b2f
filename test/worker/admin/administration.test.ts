import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { listAudit } from '../../../src/worker/admin/audit-handler.ts'
import * as admin from '../../../src/worker/admin/handlers.ts'
import { createToken, listTokens, revokeToken } from '../../../src/worker/admin/tokens.ts'
import { ADMIN_SCOPES } from '../../../src/worker/auth/admin-token.ts'
import type { Handler } from '../../../src/worker/context.ts'
import type { Database, Storage } from '../../../src/worker/storage/database.ts'
import { openKeyring } from '../../support/keyring.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from '../../support/sqlite-database.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const BOOT = 'boot-token'

type Context = Parameters<Handler>[1]
type Json = Record<string, unknown>

let db: SqliteDatabase
let storage: Storage
let context: Context
let now: number
let logged: string[]

beforeEach(() => {
  db = openSqlite()
  storage = sharedStorage(db)
  now = NOW
  logged = []
  const parts = {
    adminToken: BOOT,
    get requestId() {
      return crypto.randomUUID()
    },
    storage,
    keyring: openKeyring(storage),
    now: () => now++,
    log: (event: string) => logged.push(event),
    config: { service: { mode: 'local' }, plans: {} },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that these handlers touch
  context = parts as unknown as Context
})

interface Options {
  readonly body?: Json
  readonly params?: Record<string, string>
  readonly query?: string
  readonly token?: string
}

async function call(handler: Handler, options: Options = {}): Promise<Json> {
  const { body, params = {}, query = '', token = BOOT } = options
  const request = new Request(`http://router/admin${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    ...(body && { body: JSON.stringify(body) }),
  })
  const response = await handler(request, context, params)
  return z.record(z.string(), z.unknown()).parse(await response.json())
}

const refusal = (...of: Parameters<typeof call>) => call(...of).then(() => undefined, told)

async function tokenOf(scope: string): Promise<string> {
  return String((await call(createToken, { body: { name: scope, scope } }))['token'])
}

const entries = async (query = '') =>
  z.array(z.looseObject({ id: z.string() })).parse((await call(listAudit, { query }))['data'])

/** The whole table is code of the worker and not of Node, so its types are left behind here. */
const router: unknown = await import(
  new URL('../../../src/worker/endpoints.ts', import.meta.url).href
)
const { ENDPOINTS } = z
  .object({
    ENDPOINTS: z.array(
      z.object({
        method: z.string(),
        path: z.string(),
        audience: z.string(),
        operation: z.object({ scope: z.string().optional() }),
        handler: z.custom<Handler>((value) => typeof value === 'function'),
      }),
    ),
  })
  .parse(router)

const OF_OPERATORS = ENDPOINTS.filter(({ audience }) => audience === 'admin')

describe('every endpoint of the operator', () => {
  it('states the scope that it needs: reading alone for GET', () => {
    for (const { method, path, operation } of OF_OPERATORS) {
      expect(path).toMatch(/^\/admin\//)
      // Every token may begin and end its own session.
      const reads = method === 'GET' || path === '/admin/session'
      const expected = reads ? ['read'] : ['customers', 'all']
      expect(expected).toContain(operation.scope)
    }
    expect(ENDPOINTS.filter(({ path }) => path.startsWith('/admin'))).toEqual(OF_OPERATORS)
  })

  it.each(
    OF_OPERATORS.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const),
  )('%s takes no token below its scope, and those of it', async (_name, { handler, operation }) => {
    const code = (token: string) =>
      refusal(handler, { token }).then(
        (refused) => refused?.code ?? 'done',
        () => 'went on',
      )
    expect(await code('')).toBe('unauthorized')
    expect(await code('cmra_0000000000_0000000000000000000000000000000000000000')).toBe(
      'unauthorized',
    )
    const needed = ADMIN_SCOPES.findIndex((scope) => scope === operation.scope)
    const tokens: string[] = []
    for (const scope of ADMIN_SCOPES) tokens.push(await tokenOf(scope))
    const before = await entries()
    for (const token of tokens.slice(0, needed)) {
      expect(await code(token)).toBe('insufficient_scope')
    }
    expect(await entries()).toEqual(before)
    for (const token of tokens.slice(needed)) {
      expect(await code(token)).not.toMatch(/^(unauthorized|insufficient_scope)$/)
    }
  })
})

describe('named admin tokens', () => {
  it('are shown once, listed without the secret, and refused once revoked', async () => {
    const made = await call(createToken, {
      body: { name: 'console', scope: 'read', expires_at: '2026-12-01T00:00:00Z' },
    })
    const { token, ...view } = made
    expect(view).toMatchObject({
      id: expect.stringMatching(/^[0-9a-z]{10}$/),
      name: 'console',
      scope: 'read',
      expires_at: '2026-12-01T00:00:00.000Z',
    })
    expect(await call(listTokens, { token: String(token) })).toEqual({ data: [view] })
    const stored = JSON.stringify(db.connection.prepare('SELECT * FROM admin_tokens').all())
    expect(stored).not.toContain(String(token).split('_')[2])
    const params = { id: String(view['id']) }
    expect(await call(revokeToken, { params })).toEqual({ id: view['id'], revoked: true })
    expect(await call(listTokens)).toEqual({ data: [] })
    expect(await refusal(listTokens, { token: String(token) })).toMatchObject({
      code: 'unauthorized',
    })
    expect(await refusal(revokeToken, { params })).toEqual({
      code: 'not_found',
      message: 'There is no such admin token.',
    })
  })

  it('have a name and one of the scopes', async () => {
    for (const [body, param] of [
      [{ name: '', scope: 'all' }, 'name'],
      [{ name: 'x' }, 'scope'],
      [{ name: 'x', scope: 'root' }, 'scope'],
      [{ name: 'x', scope: ['all'] }, 'scope'],
      [{ name: 'x', scope: 'read', id: 'mine' }, 'id'],
    ] as const) {
      expect(await refusal(createToken, { body })).toMatchObject({
        code: 'invalid_request_error',
        param,
      })
    }
  })
})

describe('the end of an admin token', () => {
  const made = (expires_at: string | null) =>
    refusal(createToken, { body: { name: 'x', scope: 'read', expires_at } })

  it('is refused where it is in the past or this very moment: nobody could use the token', async () => {
    for (const at of ['2026-11-20T11:59:59.999Z', '2026-11-20T12:00:00Z', '1970-01-01T00:00:00Z']) {
      now = NOW
      expect(await made(at)).toEqual({
        code: 'invalid_request_error',
        message: '"expires_at" is in the past: the token could never be used.',
        param: 'expires_at',
      })
    }
    expect(await call(listTokens)).toEqual({ data: [] })
    const outcomes = (await entries()).map(({ status, created }) => [status, created])
    expect(outcomes).toEqual([400, 400, 400].map((status) => [status, null]))
  })

  it('may be to come, or null: none', async () => {
    expect(await made('2026-11-20T12:01:00Z')).toBeUndefined()
    expect(await made(null)).toBeUndefined()
  })
})

describe('the audit log', () => {
  it('has every action with who did it, what it changed and how it ended, newest first', async () => {
    const token = await tokenOf('customers')
    const body = { name: 'Jane Doe', billing: 'prepaid', balance_eur: '5.00' }
    const { id } = await call(admin.createCustomer, { token, body })
    const params = { id: String(id) }
    const { key, key_prefix: prefix } = await call(admin.createKey, {
      token,
      params,
      body: { name: "Jane's laptop", limit_eur: '2.00' },
    })
    // A user pastes the whole key where its prefix belongs.
    const other = { ...params, key_prefix: String(key) }
    await refusal(admin.deleteKey, { token, params: other })
    await call(admin.addCredit, { params, body: { amount_eur: '1.00', reference: 'Jane 7' } })
    const log = await entries()
    const byToken = { token_id: token.split('_')[1], token_name: 'customers' }
    const done = { status: 200, created: null, created_at: expect.stringMatching(/^2026-11-20T/) }
    expect(log.map(({ id: _id, ...entry }) => entry)).toEqual([
      {
        ...done,
        token_id: null,
        token_name: 'boot',
        action: 'credits.add',
        target: id,
        changes: { amount_eur: '1.00', reference: '[not kept]' },
      },
      {
        ...done,
        ...byToken,
        action: 'keys.delete',
        target: '[not an id]',
        changes: {},
        status: 404,
      },
      {
        ...done,
        ...byToken,
        action: 'keys.create',
        target: id,
        changes: { name: '[not kept]', limit_eur: '2.00' },
        created: prefix,
      },
      {
        ...done,
        ...byToken,
        action: 'customers.create',
        target: null,
        changes: { name: '[not kept]', billing: 'prepaid', balance_eur: '5.00' },
        created: id,
      },
      {
        ...done,
        token_id: null,
        token_name: 'boot',
        action: 'tokens.create',
        target: null,
        changes: { name: '[not kept]', scope: 'customers' },
        created: token.split('_')[1],
      },
    ])
    const text = JSON.stringify(log)
    expect(text).not.toMatch(/Jane/)
    expect(text).not.toContain(String(key).split('_').at(-1))
    expect(text).not.toContain(token.split('_')[2])
  })

  it('is paged without a gap', async () => {
    for (let count = 0; count < 5; count++) {
      await tokenOf('read')
    }
    const all = await entries()
    const first = await call(listAudit, { query: '?limit=2' })
    expect(first).toEqual({ data: all.slice(0, 2), has_more: true })
    const second = await call(listAudit, { query: `?limit=3&before=${all[1]?.id}` })
    expect(second).toEqual({ data: all.slice(2), has_more: false })
    const last = await call(listAudit, { query: `?before=${all.at(-1)?.id}` })
    expect(last).toEqual({ data: [], has_more: false })
  })

  it('has no page before an entry that it does not have, which would look like its end', async () => {
    await tokenOf('read')
    expect(await entries()).toHaveLength(1)
    for (const before of ['x', '', crypto.randomUUID()]) {
      expect(await refusal(listAudit, { query: `?before=${before}` })).toEqual({
        code: 'invalid_parameter',
        message: '`before` names no entry.',
        param: 'before',
      })
    }
  })

  it('must record an action before it is carried out, and shows where the outcome is not known', async () => {
    const failing = (table: string): Database => ({
      batch: (statements) =>
        statements.some((statement) => statement.sql.includes(`INTO ${table}`))
          ? Promise.reject(new Error(`no ${table}`))
          : db.batch(statements),
    })
    const without = (table: string) => ({
      ...context,
      requestId: crypto.randomUUID(),
      storage: sharedStorage(failing(table)),
    })
    const body = JSON.stringify({ name: 'x', scope: 'all' })
    const request = () =>
      new Request('http://router/', {
        method: 'POST',
        headers: { authorization: `Bearer ${BOOT}` },
        body,
      })
    await expect(createToken(request(), without('audit_log'), {})).rejects.toThrow('no audit_log')
    expect(await call(listTokens)).toEqual({ data: [] })
    expect((await createToken(request(), without('audit_outcomes'), {})).status).toBe(200)
    expect(logged).toEqual(['audit_outcome_lost'])
    expect(await entries()).toMatchObject([{ action: 'tokens.create', status: null }])
  })
})
