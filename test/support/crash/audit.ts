import { createLocalJWKSet, compactVerify, type JSONWebKeySet } from 'jose'
import { expect } from 'vitest'
import { z } from 'zod'
import { AdminApi } from '../../../src/host/stack/admin-api.ts'
import { parseNano } from '../../../src/protocol/money.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import { numberOf } from '../../../src/worker/storage/row.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import type { RouterAddress, TestCustomer } from '../customer.ts'
import { one, readLedgerTotals } from '../ledger.ts'
import type { Sighting } from './clients.ts'

/** What must hold once every part answers again. */
export interface Audit {
  readonly router: RouterAddress
  readonly customer: TestCustomer
  readonly openingEur: string
  readonly sightings: readonly Sighting[]
}

const rowSchema = z.looseObject({
  id: z.string(),
  receipt_id: z.string().nullable(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
})

type UsageRow = z.output<typeof rowSchema>

const PAGE = 1000
/** Beyond every reservation's end, and short of any receipt's. */
const AFTER_RESERVATIONS_MS = 6 * 3_600_000

/**
 * Proves through the router's own interface that a crash lost and doubled nothing: every complete answer has its
 * row and its receipt, no refused request has a row, no row is there twice, nothing stays reserved, and the balance
 * is what was paid in less what the rows cost.
 * @returns how many rows there are
 */
export async function audit({ router, customer, openingEur, sightings }: Audit): Promise<number> {
  const admin = new AdminApi(router.baseUrl, router.adminToken)
  const now = new Date(Date.now() + AFTER_RESERVATIONS_MS).toISOString()
  await admin.call('POST', '/admin/maintenance', { now })
  expect(await admin.call('POST', '/admin/maintenance', { now })).toMatchObject({ released: 0 })

  const { rows, costNano } = await readLedger(router, customer)
  const ids = new Set(rows.map((row) => row.id))
  const receiptIds = rows.flatMap((row) => row.receipt_id ?? [])
  expect(ids.size).toBe(rows.length)
  expect(new Set(receiptIds).size).toBe(receiptIds.length)

  const { balance_eur, reserved_eur } = await customer.show()
  expect(reserved_eur).toBe('0.00')
  expect(parseNano(openingEur) - parseNano(balance_eur)).toBe(costNano)

  const refused = sightings.filter((sighting) => sighting.end === 'refused')
  expect(refused.filter(({ requestId }) => ids.has(requestId ?? ''))).toEqual([])
  expectRows(sightings, rows)
  await expectReceipts(router, customer, sightings, receiptIds)
  return rows.length
}

/**
 * Proves the same in the database itself: totals that agree with their rows, nothing open, and as many receipts as
 * rows that name one, each the other's.
 */
export async function auditDatabase(db: Database, customerId: string): Promise<void> {
  const totals = await readLedgerTotals(db, customerId)
  expect(totals).toMatchObject({ reserved: 0n, open: 0 })
  const counts = await one(
    db,
    sql`SELECT COUNT(*) AS receipts, COUNT(u.id) AS named, COUNT(DISTINCT u.id) AS requests,
      (SELECT COUNT(receipt_id) FROM usage WHERE customer_id = ${customerId}) AS naming
      FROM receipts r LEFT JOIN usage u ON u.receipt_id = r.receipt_id
      WHERE r.customer_id = ${customerId}`,
  )
  const receipts = numberOf(counts, 'receipts')
  for (const name of ['named', 'requests', 'naming']) expect(numberOf(counts, name)).toBe(receipts)
}

function expectRows(sightings: readonly Sighting[], rows: readonly UsageRow[]): void {
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const { requestId = '', wantsReceipt, completion, end } of sightings) {
    if (end !== 'complete') continue
    const receiptId = completion?.service.receipt_id
    expect(receiptId !== undefined).toBe(wantsReceipt)
    expect(byId.get(requestId)).toMatchObject({ receipt_id: receiptId ?? null })
    if (completion?.usage) expect(byId.get(requestId)).toMatchObject(tokensOf(completion.usage))
  }
}

function tokensOf({ prompt_tokens, completion_tokens }: Record<string, unknown>) {
  return { prompt_tokens, completion_tokens }
}

/** Every receipt that a row names is there and signed; that of a complete answer is about its very bytes. */
async function expectReceipts(
  router: RouterAddress,
  customer: TestCustomer,
  sightings: readonly Sighting[],
  receiptIds: readonly string[],
): Promise<void> {
  const digests = new Map(
    sightings.flatMap(({ completion, digest }) =>
      completion?.service.receipt_id === undefined ? [] : [[completion.service.receipt_id, digest]],
    ),
  )
  expect([...digests.keys()].filter((id) => !receiptIds.includes(id))).toEqual([])
  const keySet: JSONWebKeySet = await (await get(router, customer, '/.well-known/jwks.json')).json()
  const keys = createLocalJWKSet(keySet)
  for (const id of receiptIds) {
    const answer = await get(router, customer, `/v1/receipts/${id}`)
    expect(answer.status).toBe(200)
    const { receipt }: { receipt: string } = await answer.json()
    const { payload } = await compactVerify(receipt, keys, { algorithms: ['ES256'] })
    const claims: unknown = JSON.parse(new TextDecoder().decode(payload))
    const digest = digests.get(id)
    expect(claims).toMatchObject({ jti: id, ...(digest && { client_response_digest: digest }) })
  }
}

/** All usage rows, and their costs added up exactly. */
async function readLedger(router: RouterAddress, customer: TestCustomer) {
  const rows: UsageRow[] = []
  let costNano = 0n
  for (let total = 1; rows.length < total;) {
    const answer = await get(router, customer, `/v1/usage?limit=${PAGE}&offset=${rows.length}`)
    const text = await answer.text()
    const costs = text.matchAll(/"cost_eur":(-?[0-9.]+)/g)
    for (const [, cost = ''] of costs) costNano += parseNano(cost)
    const page = pageSchema.parse(JSON.parse(text))
    total = page.total_count
    if (page.data.length === 0) break
    rows.push(...page.data)
  }
  return { rows, costNano }
}

const pageSchema = z.object({ data: z.array(rowSchema), total_count: z.int() })

function get(router: RouterAddress, { key }: TestCustomer, path: string): Promise<Response> {
  return fetch(router.baseUrl + path, { headers: { authorization: `Bearer ${key}` } })
}
