import { beforeEach, describe, expect, test } from 'vitest'
import type { Handler } from '../../../src/worker/context.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import {
  CUSTOMER_SUMMARY_OPERATION,
  CUSTOMER_USAGE_OPERATION,
  listCustomerUsage,
  summarizeCustomerUsage,
} from '../../../src/worker/usage/operator-handlers.ts'
import { addCustomer, askOf, NOW, settlementOf } from '../../support/ledger.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from '../../support/sqlite-database.ts'

const NO_CUSTOMER = { code: 'not_found', message: 'There is no such customer.' }

let db: SqliteDatabase
let key: Awaited<ReturnType<typeof addCustomer>>

beforeEach(async () => {
  db = openSqlite()
  key = await addCustomer(db, { balance: 1000n })
  await addCustomer(db, { id: 'other', balance: 1000n })
  for (const [index, nano] of [30n, 40n].entries()) {
    await admit(db, askOf(key, `r${index}`, { nano }))
    const createdAtMs = NOW + index * 86_400_000
    await commitSettlement(db, settlementOf(key, `r${index}`, { nano, createdAtMs }))
  }
})

function ask(handler: Handler, id = 'acme', query = '', token = 'boot') {
  const parts = {
    adminToken: 'boot',
    storage: sharedStorage(db),
    keyring: { knows: async (one: string) => ['acme', 'other', 'never made'].includes(one) },
    now: () => NOW,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that these handlers touch
  const context = parts as unknown as Parameters<Handler>[1]
  const headers = { authorization: `Bearer ${token}` }
  return handler(new Request(`http://r/${query}`, { headers }), context, { id })
}

describe('the ledger of a customer, for operators', () => {
  test('is the customer’s own, newest first, and no other one’s', async () => {
    const answer = await ask(listCustomerUsage, 'acme', '?limit=1')
    expect(await answer.json()).toMatchObject({
      data: [{ id: 'r1', key_prefix: key.keyPrefix, cost_eur: 0.00000004 }],
      total_count: 2,
      limit: 1,
      offset: 0,
    })
    expect(await (await ask(listCustomerUsage, 'other')).json()).toMatchObject({ data: [] })
  })

  test('is added up by day and key', async () => {
    const text = await (await ask(summarizeCustomerUsage, 'acme', '?group_by=day,key')).text()
    expect(text).toContain('"total":{"requests":2')
    expect(JSON.parse(text)).toMatchObject({
      data: [
        { day: '2026-11-21', key_prefix: key.keyPrefix, requests: 1, cost_eur: 0.00000004 },
        { day: '2026-11-20', requests: 1, cost_eur: 0.00000003 },
      ],
    })
  })

  test('needs a token, a customer and parameters that can be read', async () => {
    const refusal = (...of: Parameters<typeof ask>) => ask(...of).then(() => undefined, told)
    for (const handler of [listCustomerUsage, summarizeCustomerUsage]) {
      expect(await refusal(handler, 'acme', '', 'wrong')).toMatchObject({ code: 'unauthorized' })
      expect(await refusal(handler, 'nobody')).toEqual(NO_CUSTOMER)
      expect(await refusal(handler, 'never made')).toEqual(NO_CUSTOMER)
      expect(await refusal(handler, 'acme', '?start=now')).toMatchObject({ param: 'start' })
    }
  })

  test('is gone as soon as the customer is erased', async () => {
    await beginErasure(db, 'acme', 'ledger', NOW)
    for (const handler of [listCustomerUsage, summarizeCustomerUsage]) {
      expect(await ask(handler).then(() => undefined, told)).toEqual(NO_CUSTOMER)
    }
  })

  test('is described with the parameters that it takes, and in JSON alone', () => {
    expect(Object.keys(CUSTOMER_USAGE_OPERATION.query ?? {})).toContain('key_prefix')
    expect(Object.keys(CUSTOMER_SUMMARY_OPERATION.query ?? {})).toContain('group_by')
    for (const { answer } of [CUSTOMER_USAGE_OPERATION, CUSTOMER_SUMMARY_OPERATION]) {
      expect(Object.keys(answer)).toEqual(['application/json'])
    }
  })
})
