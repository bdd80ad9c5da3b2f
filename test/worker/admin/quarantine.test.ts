import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { listQuarantine, settleOne } from '../../../src/worker/admin/quarantine.ts'
import type { Context, Handler } from '../../../src/worker/context.ts'
import { quarantine } from '../../../src/worker/settle/quarantine.ts'
import { StatementRefused } from '../../../src/worker/storage/batch-outcome.ts'
import {
  addCustomer,
  NOW,
  readLedgerTotals,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

async function kept() {
  const db = openSqlite()
  const key = await addCustomer(db, { balance: 100n })
  await quarantine(db, settlementOf(key, 'r1', { nano: 30n }), NOW)
  return { db, storage: sharedStorage(db) }
}

async function call(handler: Handler, storage: Context['storage'], params = {}, token = 'token') {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that these handlers touch
  const context = {
    adminToken: 'token',
    storage,
    requestId: crypto.randomUUID(),
    now: () => NOW,
    log: () => {},
  } as unknown as Context
  const headers = { authorization: `Bearer ${token}` }
  const request = new Request('http://router/admin', { method: 'POST', headers })
  const answer = await handler(request, context, params)
  return z.record(z.string(), z.unknown()).parse(await answer.json())
}

describe('the quarantine', () => {
  it('is listed with what it would cost, and nothing else', async () => {
    const { storage } = await kept()
    expect(await call(listQuarantine, storage)).toEqual({
      data: [
        {
          request_id: 'r1',
          customer_id: 'acme',
          model: 'nova/glm-5',
          provider: 'nova',
          prompt_tokens: 10,
          completion_tokens: 5,
          cost_eur: '0.00000003',
          created_at: '2026-11-20T12:00:00.000Z',
        },
      ],
    })
  })

  it('is settled on demand, once', async () => {
    const { db, storage } = await kept()
    expect(await call(settleOne, storage, { request_id: 'r1' })).toEqual({
      request_id: 'r1',
      settled: true,
    })
    expect(await readLedgerTotals(db)).toMatchObject({ balance: 70n, rows: 1 })
    expect(await rejectionOf(call(settleOne, storage, { request_id: 'r1' }))).toMatchObject({
      code: 'not_found',
      message: 'There is no such settlement in quarantine.',
    })
  })

  it('says so when the storage still refuses one', async () => {
    const { db } = await kept()
    const refusing = { batch: () => Promise.reject(new StatementRefused('SQLITE_CONSTRAINT')) }
    const storage = { customer: () => refusing, directory: () => db }
    expect(await rejectionOf(call(settleOne, storage, { request_id: 'r1' }))).toMatchObject({
      code: 'invalid_request_error',
      message: 'The storage still refuses this settlement.',
    })
  })

  it('is for the holder of the admin token alone', async () => {
    const { storage } = await kept()
    for (const handler of [listQuarantine, settleOne]) {
      expect(await rejectionOf(call(handler, storage, {}, 'other'))).toMatchObject({
        code: 'unauthorized',
        message: 'The admin token is missing or not valid.',
      })
    }
  })
})
