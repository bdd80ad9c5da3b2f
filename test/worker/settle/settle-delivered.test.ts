import { expect, test } from 'vitest'
import type { Exchange } from '../../../src/worker/settle/exchange.ts'
import { listQuarantined } from '../../../src/worker/settle/quarantine.ts'
import { settleDelivered, type SettleDeps } from '../../../src/worker/settle/settle.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { addCustomer, askOf, NOW, one, readLedgerTotals } from '../../support/ledger.ts'
import { pricedRoute } from '../../support/routes.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

const ROUTE = pricedRoute({ currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 })

async function delivered(ledgerOf: (db: Database) => Database, completionTokens = 1) {
  const db = openSqlite()
  const key = await addCustomer(db, { balance: 100_000n })
  const admission = await admit(db, askOf(key, 'r1', { nano: 80n }))
  const usage = { promptTokens: 1, completionTokens, cachedTokens: 0, cacheWriteTokens: 0 }
  const events: string[] = []
  const exchange = {
    requestId: 'r1',
    admission,
    modality: 'chat',
    requestedRoute: 'glm-5',
    route: ROUTE,
    failover: false,
    usage,
    usageCapped: false,
    billedSeconds: undefined,
    reportedSeconds: null,
  } satisfies Partial<Exchange>
  const deps: Partial<SettleDeps> = {
    coalesce: (_group, work) => work(),
    ledger: ledgerOf(db),
    log: (event) => events.push(event),
    usdEur: undefined,
    now: () => NOW,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that settling without a receipt touches
  const run = () => settleDelivered(exchange as Exchange, deps as SettleDeps)
  return { db, events, run }
}

/** Refuses usage rows, as an engine does whose constraint one of them breaks. */
const refusingRows = (db: Database): Database => ({
  batch: (statements) =>
    statements.some(({ sql }) => sql.includes('INSERT INTO usage'))
      ? Promise.reject(new Error('SQLITE_CONSTRAINT'))
      : db.batch(statements),
})

test('what the storage refuses is kept for the operator, and the reservation given back', async () => {
  const { db, events, run } = await delivered(refusingRows)
  await run()
  expect(events).toEqual(['settle_quarantined'])
  expect(await listQuarantined(db, 10)).toMatchObject([{ requestId: 'r1', customerId: 'acme' }])
  expect(await readLedgerTotals(db)).toEqual({ balance: 100_000n, reserved: 0n, rows: 0, open: 0 })
})

test('a bill is at most what can be reserved, however many tokens a provider claims and the request allowed', async () => {
  const { db, events, run } = await delivered((ledger) => ledger, Number.MAX_SAFE_INTEGER)
  await run()
  expect(events).toEqual(['settled'])
  const million = 1_000_000n * 1_000_000_000n
  expect(await readLedgerTotals(db)).toMatchObject({ balance: 100_000n - million, rows: 1 })
  expect(await one(db, { sql: 'SELECT capped FROM usage', params: [] })).toEqual({ capped: 1 })
})

test('a storage that is away is no reason to keep anything: it is asked again later', async () => {
  const { db, events, run } = await delivered(() => ({
    batch: () => Promise.reject(new StorageUnavailable('away')),
  }))
  await expect(run()).rejects.toThrow(new StorageUnavailable('away'))
  expect([events, await listQuarantined(db, 10)]).toEqual([[], []])
})

test('a storage that is away while it settles, and answers again at once, has nothing to keep either', async () => {
  const { db, events, run } = await delivered((ledger) => ({
    batch: (statements) =>
      statements.some(({ sql }) => sql.includes('INSERT INTO usage'))
        ? Promise.reject(new StorageUnavailable('away'))
        : ledger.batch(statements),
  }))
  await expect(run()).rejects.toThrow(new StorageUnavailable('away'))
  expect([events, await listQuarantined(db, 10)]).toEqual([[], []])
  const { reserved, open } = await readLedgerTotals(db)
  expect({ reserved, open }).toEqual({ reserved: 80n, open: 1 })
})
