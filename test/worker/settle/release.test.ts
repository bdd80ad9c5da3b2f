import { describe, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { releaseLost } from '../../../src/worker/settle/release.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { addCustomer, askOf, readLedgerTotals } from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

function tools(ledger: Database) {
  const events: string[] = []
  const waits: number[] = []
  const pause = async (ms: number) => void waits.push(ms)
  return { events, waits, tools: { ledger, pause, log: (event: string) => events.push(event) } }
}

const GONE: Database = {
  batch: async () => {
    throw new StorageUnavailable('away')
  },
}

describe('an admission whose answer was lost', () => {
  test('is given back at the first look that finds it', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    await admit(db, askOf(key, 'r1', { nano: 80n }))
    const { waits, events, tools: given } = tools(db)
    await releaseLost('r1', given)
    expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 0n, rows: 0, open: 0 })
    expect([waits.length, events]).toEqual([1, []])
  })

  test('is looked for again, because it may be committed later', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    const { tools: given } = tools(db)
    let looks = 0
    const pause = async () => {
      looks += 1
      if (looks === 3) await admit(db, askOf(key, 'r1', { nano: 80n }))
    }
    await releaseLost('r1', { ...given, pause })
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 0n, open: 0 })
  })

  test('is left to the sweep by a storage that stays away, and that is logged', async () => {
    const { waits, events, tools: given } = tools(GONE)
    await releaseLost('r1', given)
    expect([waits.length, events]).toEqual([3, ['release_failed']])
  })
})
