import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import * as admin from '../../../src/worker/admin/handlers.ts'
import type { Handler } from '../../../src/worker/context.ts'
import { openKeyring } from '../../support/keyring.ts'
import type { Storage } from '../../../src/worker/storage/database.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { told } from '../../support/refusal.ts'
import { catalogueOf } from '../../support/router-config.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const TOKEN = 'admin-token'

type Context = Parameters<Handler>[1]

/** What is shown of a key without its own limits. */
const UNLIMITED = {
  expires_at: null,
  models: null,
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrent_requests: null,
  min_attestation: null,
  limit_eur: null,
  limit_reset: 'none',
  spent_eur: '0.00',
  reserved_eur: '0.00',
  remaining_eur: null,
  resets_at: null,
  rotated_at: null,
  former_ends_at: null,
}

const idOf = (view: Record<string, unknown>) => ({ id: String(view['id']) })

describe('the admin interface', () => {
  let storage: Storage
  let context: Context
  let mode: 'local' | 'production'

  beforeEach(() => {
    storage = sharedStorage(openSqlite())
    mode = 'local'
    const parts = {
      adminToken: TOKEN,
      get requestId() {
        return crypto.randomUUID()
      },
      storage,
      keyring: openKeyring(storage),
      now: () => NOW,
      log: () => {},
      config: {
        get service() {
          return { mode }
        },
        plans: { gold: { discount_pct: 10 } },
      },
      catalogue: catalogueOf({ 'eu/nova/glm-5': {} }),
      link: { providers: async () => [{ provider: 'nova' }] },
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that admin handlers touch
    context = parts as unknown as Context
  })

  async function call(
    handler: Handler,
    options: {
      readonly body?: unknown
      readonly params?: Record<string, string>
      readonly query?: string
      readonly token?: string
    } = {},
  ): Promise<Record<string, unknown>> {
    const { body, params = {}, query = '', token = TOKEN } = options
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const request = new Request(`http://router/admin${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: text }),
    })
    const response = await handler(request, context, params)
    expect(response.status).toBe(200)
    return z.record(z.string(), z.unknown()).parse(await response.json())
  }

  const refusal = (...args: Parameters<typeof call>) => call(...args).then(() => undefined, told)
  const create = (more: Record<string, unknown> = {}) =>
    call(admin.createCustomer, {
      body: { name: 'acme', billing: 'prepaid', balance_eur: '10.00', ...more },
    })
  const INVALID = 'invalid_request_error'

  it('refuses requests without the admin token', async () => {
    const unauthorized = {
      code: 'unauthorized',
      message: 'The admin token is missing or not valid.',
    }
    for (const handler of Object.values(admin)) {
      expect(await refusal(handler, { token: 'other', body: {} })).toEqual(unauthorized)
    }
  })

  it('creates customers and shows them', async () => {
    const made = await create()
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-z]{28}$/),
      name: 'acme',
      plan: 'standard',
      billing: 'prepaid',
      balance_eur: '10.00',
      reserved_eur: '0.00',
      receipt_retention_days: null,
      suspended_at: null,
      erased_at: null,
      alert_balance_eur: null,
      alert_key_limit_pct: null,
      created_at: '2026-11-20T12:00:00.000Z',
    })
    expect(await call(admin.showCustomer, { params: idOf(made) })).toEqual(made)
    const rich = { plan: 'gold', billing: 'postpaid', receipt_retention_days: 90 }
    expect(await create({ ...rich, balance_eur: '0.000000001' })).toMatchObject({
      ...rich,
      balance_eur: '0.000000001',
    })
  })

  it('writes the opening balance down as a credit', async () => {
    const { id } = idOf(await create())
    const credits = sql`SELECT CAST(amount_nano AS TEXT) AS amount FROM credits WHERE customer_id = ${id}`
    expect(await storage.customer(id).batch([credits])).toEqual([[{ amount: '10000000000' }]])
  })

  it.each([
    [{ name: '' }, 'name'],
    [{ name: 'a\nb' }, 'name'],
    [{ name: 5 }, 'name'],
    [{ billing: 'barter' }, 'billing'],
    [{ plan: 'silver' }, 'plan'],
    [{ plan: 'toString' }, 'plan'],
    [{ balance_eur: 10 }, 'balance_eur'],
    [{ balance_eur: '-1' }, 'balance_eur'],
    [{ balance_eur: '1e3' }, 'balance_eur'],
    [{ balance_eur: '0.0000000001' }, 'balance_eur'],
    [{ balance_eur: '1000000001' }, 'balance_eur'],
    [{ receipt_retention_days: 0 }, 'receipt_retention_days'],
    [{ receipt_retention_days: 1.5 }, 'receipt_retention_days'],
    [{ extra: 1 }, 'extra'],
  ])('refuses a customer with %j', async (more, param) => {
    const body = { name: 'acme', billing: 'prepaid', ...more }
    expect(await refusal(admin.createCustomer, { body })).toMatchObject({ code: INVALID, param })
  })

  it.each([10, null, '1e3'])(
    'says how an amount is written, where it is given as %j',
    async (amount) => {
      const body = { name: 'acme', billing: 'prepaid', balance_eur: amount }
      expect(await refusal(admin.createCustomer, { body })).toEqual({
        code: INVALID,
        param: 'balance_eur',
        message: 'Give euros as text with at most nine decimals, such as "5.00", up to 1000000000.',
      })
    },
  )

  it('refuses a body that is no JSON object', async () => {
    const notJson = { code: INVALID, message: 'The request body is not JSON.' }
    expect(await refusal(admin.createCustomer, { body: '{' })).toEqual(notJson)
    expect(await refusal(admin.createCustomer, { body: '[]' })).toMatchObject({ code: INVALID })
    expect(await refusal(admin.createCustomer)).toMatchObject({ code: INVALID, param: 'name' })
  })

  it('lists customers page by page', async () => {
    const names = ['a', 'b', 'c']
    for (const name of names) await create({ name })
    const all = await call(admin.listCustomers)
    expect(all).toMatchObject({ has_more: false })
    const first = await call(admin.listCustomers, { query: '?limit=2' })
    expect(first).toMatchObject({ has_more: true })
    const page = z.object({ data: z.array(z.object({ id: z.string(), name: z.string() })) })
    const after = page.parse(first).data.at(-1)?.id ?? ''
    const second = await call(admin.listCustomers, { query: `?limit=2&after=${after}` })
    const listed = [...page.parse(first).data, ...page.parse(second).data]
    expect(listed.map(({ name }) => name).toSorted()).toEqual(names)
    expect(await refusal(admin.listCustomers, { query: '?after=nobody' })).toEqual({
      code: 'invalid_parameter',
      message: '`after` names no customer.',
      param: 'after',
    })
  })

  it('knows no customer that was never made, with whatever it is asked', async () => {
    const unknown = { code: 'not_found', message: 'There is no such customer.' }
    const madeElsewhere = await context.keyring.newCustomerId()
    for (const id of ['0'.repeat(28), 'x', '', madeElsewhere]) {
      const params = { id, key_prefix: 'k' }
      const credit = { amount_eur: '1', reference: 'r' }
      expect(await refusal(admin.showCustomer, { params })).toEqual(unknown)
      expect(await refusal(admin.createKey, { params, body: { name: 'k' } })).toEqual(unknown)
      expect(await refusal(admin.listKeys, { params })).toEqual(unknown)
      expect(await refusal(admin.addCredit, { params, body: credit })).toEqual(unknown)
      expect(await refusal(admin.deleteKey, { params })).toMatchObject({ code: 'not_found' })
    }
  })

  it('limits a key at its creation and later, and lifts a limit with null', async () => {
    const params = idOf(await create())
    const limits = {
      expires_at: '2027-01-01T00:00:00.000Z',
      models: ['glm-5', 'eu/nova/glm-5'],
      requests_per_minute: 5,
      tokens_per_minute: 1000,
      concurrent_requests: 2,
      limit_eur: '1.50',
      limit_reset: 'monthly',
    }
    const made = await call(admin.createKey, { params, body: { name: 'laptop', ...limits } })
    expect(made).toMatchObject({
      ...limits,
      spent_eur: '0.00',
      remaining_eur: '1.50',
      resets_at: '2026-12-01T00:00:00.000Z',
    })
    const one = { ...params, key_prefix: String(made['key_prefix']) }
    const lifted = Object.fromEntries(Object.keys(limits).map((name) => [name, null]))
    const body = { ...lifted, name: 'desk', limit_reset: 'none' }
    expect(await call(admin.changeKey, { params: one, body })).toMatchObject({
      name: 'desk',
      ...UNLIMITED,
    })
    expect(await call(admin.changeKey, { params: one, body: {} })).toMatchObject({ name: 'desk' })
    const unknown = call(admin.changeKey, { params: { ...one, key_prefix: 'cmr_x' }, body })
    expect(await unknown.catch(told)).toEqual({
      code: 'not_found',
      message: 'The customer has no such key.',
    })
  })

  it.each([
    [{ limit_eur: '-1' }, 'limit_eur'],
    [{ limit_reset: 'hourly' }, 'limit_reset'],
    [{ expires_at: 'tomorrow' }, 'expires_at'],
    [{ expires_at: '2026-11-20T12:00:00Z' }, 'expires_at'],
    [{ models: [] }, 'models'],
    [{ models: ['a b'] }, 'models'],
    [{ models: ['glm-5', 'glm-6'] }, 'models'],
    [{ requests_per_minute: 0 }, 'requests_per_minute'],
    [{ tokens_per_minute: 1.5 }, 'tokens_per_minute'],
    [{ concurrent_requests: '2' }, 'concurrent_requests'],
    [{ owner: 'me' }, 'owner'],
  ])('refuses a key with %j, and a change to it', async (limits, param) => {
    const params = { ...idOf(await create()), key_prefix: 'cmr_x' }
    const body = { name: 'laptop', ...limits }
    const refused = { code: 'invalid_request_error', param }
    expect(await call(admin.createKey, { params, body }).catch(told)).toMatchObject(refused)
    expect(await call(admin.changeKey, { params, body }).catch(told)).toMatchObject(refused)
  })

  it('changes a customer, who is suspended from the first time on, and resumes them', async () => {
    const params = idOf(await create({ plan: 'gold', receipt_retention_days: 30 }))
    const change = (body: object) => call(admin.patchCustomer, { params, body })
    expect(
      await change({
        name: 'new',
        plan: 'standard',
        receipt_retention_days: null,
        suspended: true,
      }),
    ).toMatchObject({
      name: 'new',
      plan: 'standard',
      billing: 'prepaid',
      receipt_retention_days: null,
      suspended_at: '2026-11-20T12:00:00.000Z',
      balance_eur: '10.00',
    })
    const alerts = { alert_balance_eur: '2.50', alert_key_limit_pct: 90 }
    expect(await change(alerts)).toMatchObject({ name: 'new', ...alerts })
    expect(await change({ alert_balance_eur: null, suspended: false })).toMatchObject({
      suspended_at: null,
      alert_balance_eur: null,
      alert_key_limit_pct: 90,
    })
    for (const [body, param] of [
      [{ plan: 'silver' }, 'plan'],
      [{ name: '' }, 'name'],
      [{ name: null }, 'name'],
      [{ suspended: 'yes' }, 'suspended'],
      [{ billing: 'postpaid' }, 'billing'],
      [{ balance_eur: '99' }, 'balance_eur'],
      [{ alert_key_limit_pct: 101 }, 'alert_key_limit_pct'],
    ] as const) {
      expect(await refusal(admin.patchCustomer, { params, body })).toMatchObject({
        code: INVALID,
        param,
      })
    }
    const nobody = { params: { id: 'nobody' }, body: { name: 'x' } }
    expect(await refusal(admin.patchCustomer, nobody)).toMatchObject({ code: 'not_found' })
  })

  it('shows a key once, lists its prefix and deletes it', async () => {
    const params = idOf(await create())
    const made = await call(admin.createKey, { params, body: { name: 'laptop' } })
    const { key, ...view } = made
    expect(view).toEqual({
      key_prefix: String(key).slice(0, String(key).lastIndexOf('_')),
      name: 'laptop',
      created_at: '2026-11-20T12:00:00.000Z',
      ...UNLIMITED,
    })
    expect(await call(admin.listKeys, { params })).toEqual({ data: [view] })
    const one = { ...params, key_prefix: String(view['key_prefix']) }
    expect(await call(admin.deleteKey, { params: one })).toEqual({
      key_prefix: view['key_prefix'],
      deleted: true,
    })
    expect(await call(admin.listKeys, { params })).toEqual({ data: [] })
    const gone = { code: 'not_found', message: 'The customer has no such key.' }
    expect(await refusal(admin.deleteKey, { params: one })).toEqual(gone)
    expect(await refusal(admin.createKey, { params, body: {} })).toMatchObject({ param: 'name' })
  })

  it('adds a credit once for each reference', async () => {
    const params = idOf(await create())
    const body = { amount_eur: '5.00', reference: 'invoice 1' }
    const first = await call(admin.addCredit, { params, body })
    expect(first).toMatchObject({ balance_eur: '15.00', applied: true })
    const again = await call(admin.addCredit, { params, body: { ...body, amount_eur: '7' } })
    expect(again).toMatchObject({ balance_eur: '15.00', applied: false })
    for (const [more, param] of [
      [{ amount_eur: '0' }, 'amount_eur'],
      [{ amount_eur: '-5.00' }, 'amount_eur'],
      [{ amount_eur: 'five' }, 'amount_eur'],
      [{ reference: '' }, 'reference'],
    ] as const) {
      const refused = await refusal(admin.addCredit, { params, body: { ...body, ...more } })
      expect(refused).toMatchObject({ code: INVALID, param })
    }
  })

  it('refuses a credit that takes the balance beyond what can be stored, but not its repeat', async () => {
    const params = idOf(await create())
    const add = (reference: string, amount: string) => ({
      params,
      body: { amount_eur: amount, reference },
    })
    // Ten euros are there from the start.
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8])
      await call(admin.addCredit, add(`r-${n}`, '1000000000'))
    expect(await refusal(admin.addCredit, add('r-9', '1000000000'))).toEqual({
      code: INVALID,
      message:
        'With this credit the balance would be more than 9000000000 EUR, the most that it may be.',
      param: 'amount_eur',
    })
    expect(await call(admin.addCredit, add('r-9', '999999990'))).toMatchObject({
      balance_eur: '9000000000.00',
      applied: true,
    })
    expect(await call(admin.addCredit, add('r-8', '1000000000'))).toMatchObject({ applied: false })
  })

  it('runs maintenance, and at another time in local mode only', async () => {
    const { id } = idOf(await create())
    await storage.customer(id).batch([
      sql`UPDATE customers SET reserved_nano = 7 WHERE customer_id = ${id}`,
      sql`INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano, created_at,
        expires_at) VALUES ('r', ${id}, 'k', 7, ${NOW}, ${NOW + 3_600_000})`,
    ])
    const nothing = { released: 0, expired: 0, cleared: 0 }
    expect(await call(admin.maintenance)).toEqual(nothing)
    const later = { now: '2026-11-21T00:00:00Z' }
    mode = 'production'
    expect(await refusal(admin.maintenance, { body: later })).toEqual({
      code: INVALID,
      message: 'Only in local mode may maintenance run at another time.',
      param: 'now',
    })
    mode = 'local'
    expect(await refusal(admin.maintenance, { body: { now: 'soon' } })).toMatchObject({
      code: INVALID,
      param: 'now',
    })
    expect(await call(admin.maintenance, { body: later })).toEqual({ ...nothing, released: 1 })
    const view = await call(admin.showCustomer, { params: { id } })
    expect(view).toMatchObject({ reserved_eur: '0.00' })
  })

  it('shows providers as the daemon does', async () => {
    expect(await call(admin.listProviders)).toEqual({ data: [{ provider: 'nova' }] })
  })
})
