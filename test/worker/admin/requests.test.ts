import { beforeEach, describe, expect, test } from 'vitest'
import {
  followRequest,
  REQUEST_OPERATION,
  showRequest,
} from '../../../src/worker/admin/requests.ts'
import type { Handler } from '../../../src/worker/context.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { quarantine } from '../../../src/worker/settle/quarantine.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { addCustomer, askOf, NOW, receiptOf, settlementOf } from '../../support/ledger.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from '../../support/sqlite-database.ts'

let db: SqliteDatabase

beforeEach(() => {
  db = openSqlite()
})

const [described] = Object.values(REQUEST_OPERATION.answer)

/** As an operator gets it, held against the description of the interface. */
async function follow(id: string) {
  const found = await followRequest(db, id)
  expect(described?.schema.parse(found)).toEqual(found)
  return found
}

describe('one request, followed from its key to its receipt', () => {
  test('is open while it is in progress, with the amount held for it', async () => {
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n, expiresAt: NOW + 60_000 }))
    expect(await follow('r1')).toEqual({
      request_id: 'r1',
      state: 'open',
      customer_id: 'acme',
      key_prefix: key.keyPrefix,
      reserved: {
        amount_eur: '0.00000008',
        at: expect.any(String),
        expires_at: new Date(NOW + 60_000).toISOString(),
      },
      settled: null,
      receipt: null,
    })
  })

  test('is settled with its route, counts and cost, its receipt, and what vouches for the receipt’s key', async () => {
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    const receipt = receiptOf('receipt-1', { evidenceRefs: ['aa', 'bb'], kid: 'kid-1' })
    await commitSettlement(db, settlementOf(key, 'r1', { nano: 30n, receipt }))
    await db.batch([
      sql`INSERT INTO signing_keys (kid, envelope_sha256, jwk, envelope, created_at, seen_at)
        VALUES ('kid-1', 'bb', '{}', '{}', ${NOW}, ${NOW}), ('kid-2', 'cc', '{}', '{}', ${NOW}, ${NOW})`,
    ])
    const found = await follow('r1')
    expect(found).toMatchObject({
      state: 'settled',
      customer_id: 'acme',
      key_prefix: key.keyPrefix,
      reserved: null,
      settled: { cost_eur: '0.00000003', modality: 'chat', failover: false, usage_capped: false },
      receipt: {
        id: 'receipt-1',
        kid: 'kid-1',
        stored: true,
        evidence: [
          { sha256: 'aa', stored: false },
          { sha256: 'bb', stored: true },
        ],
        envelopes: [{ sha256: 'bb', first_seen_at: new Date(NOW).toISOString() }],
      },
    })
    // Neither the receipt itself, which is the customer's, nor names.
    expect(JSON.stringify(found)).not.toContain(receipt.jws)
    expect(JSON.stringify(found)).not.toContain('name of')
    await sweepAll(db, receipt.expiresAtMs + 1)
    expect(await follow('r1')).toMatchObject({ receipt: { id: 'receipt-1', stored: false } })
  })

  test('is shown as quarantined, and without its key where its customer was erased', async () => {
    const key = await addCustomer(db, { balance: 100n })
    await quarantine(db, settlementOf(key, 'r2', { nano: 30n }), NOW)
    expect(await follow('r2')).toMatchObject({ state: 'quarantined', customer_id: 'acme' })
    await admit(db, askOf(key, 'r3', { nano: 80n }))
    await commitSettlement(db, settlementOf(key, 'r3', { nano: 30n, receipt: receiptOf('x') }))
    await beginErasure(db, 'acme', 'ledger-of-acme', NOW)
    await sweepAll(db, NOW + 1)
    expect(await follow('r3')).toMatchObject({
      state: 'settled',
      customer_id: 'ledger-of-acme',
      key_prefix: null,
      receipt: null,
    })
  })

  test('is 404 where the ledger has none of the id', async () => {
    const parts = { adminToken: 'boot', storage: sharedStorage(db), now: () => NOW }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that this handler touches
    const context = parts as unknown as Parameters<Handler>[1]
    const request = new Request('http://r/', { headers: { authorization: 'Bearer boot' } })
    const asked = showRequest(request, context, { request_id: 'nobody' })
    expect(await asked.then(() => undefined, told)).toEqual({
      code: 'not_found',
      message: 'The ledger has no such request.',
    })
  })
})
