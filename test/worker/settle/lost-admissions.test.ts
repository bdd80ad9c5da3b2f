import { describe, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { LostAdmissions } from '../../../src/worker/settle/lost-admissions.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { addCustomer, askOf, NOW, readLedgerTotals } from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

function seeking(pause: (ms: number) => Promise<void> = async () => {}) {
  const events: string[] = []
  const waits: number[] = []
  const works: Promise<unknown>[] = []
  const clock = { now: NOW }
  const lost = new LostAdmissions({
    log: (event) => events.push(event),
    pause: (ms) => {
      waits.push(ms)
      return pause(ms)
    },
    now: () => clock.now,
    keepAlive: (work) => works.push(work),
  })
  return { lost, events, waits, clock, ended: () => Promise.all(works) }
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
    const { lost, waits, events, ended } = seeking()
    lost.release('r1', 'cus_1', db)
    await ended()
    expect(await readLedgerTotals(db)).toEqual({ balance: 100n, reserved: 0n, rows: 0, open: 0 })
    expect([waits.length, events]).toEqual([1, []])
  })

  test('is looked for again, because it may be committed later', async () => {
    const db = openSqlite()
    const key = await addCustomer(db, { balance: 100n })
    let looks = 0
    const { lost, ended } = seeking(async () => {
      looks += 1
      if (looks === 3) await admit(db, askOf(key, 'r1', { nano: 80n }))
    })
    lost.release('r1', 'cus_1', db)
    await ended()
    expect(await readLedgerTotals(db)).toMatchObject({ reserved: 0n, open: 0 })
  })

  test('is left to the sweep by a storage that stays away, and that is logged', async () => {
    const { lost, waits, events, ended } = seeking()
    lost.release('r1', 'cus_1', GONE)
    await ended()
    expect([waits.length, events]).toEqual([3, ['release_failed']])
  })

  /** Searches for admissions of as many customers, one each. */
  function seekOfMany(lost: LostAdmissions, count: number): void {
    for (let index = 0; index < count; index++) lost.release(`r${index}`, `cus_${index}`, GONE)
  }

  test('is left to the sweep where a thousand are looked for already, and sought again once they are found', async () => {
    const found = Promise.withResolvers<void>()
    const { lost, waits, ended } = seeking(() => found.promise)
    seekOfMany(lost, 1_001)
    expect(waits).toHaveLength(1_000)
    found.resolve()
    await ended()
    lost.release('another', 'cus_1', GONE)
    expect(waits).toHaveLength(3_001)
  })

  test('is sought of each customer, however many admissions of one are', async () => {
    const found = Promise.withResolvers<void>()
    const { lost, waits, ended } = seeking(() => found.promise)
    for (let index = 0; index < 2_000; index++) lost.release(`r${index}`, 'cus_storm', GONE)
    expect(waits).toHaveLength(500)
    for (let index = 0; index < 100; index++) lost.release(`s${index}`, 'cus_other', GONE)
    expect(waits).toHaveLength(600)
    found.resolve()
    await ended()
    lost.release('again', 'cus_storm', GONE)
    expect(waits).toHaveLength(1_801)
  })

  test('is sought again a minute after a runtime ended the requests that a thousand searches belonged to', () => {
    const { lost, waits, clock } = seeking(() => new Promise(() => {}))
    seekOfMany(lost, 1_000)
    clock.now += 59_999
    lost.release('early', 'cus_1', GONE)
    expect(waits).toHaveLength(1_000)
    clock.now += 1
    lost.release('late', 'cus_1', GONE)
    expect(waits).toHaveLength(1_001)
  })

  test('gives its place back once, although its search ends after it was taken for ended', async () => {
    const found = Promise.withResolvers<void>()
    const { lost, waits, clock, ended } = seeking(() => found.promise)
    seekOfMany(lost, 1_000)
    clock.now += 60_000
    for (let index = 0; index < 1_000; index++) lost.release(`s${index}`, `cus_${index}`, GONE)
    expect(waits).toHaveLength(2_000)
    found.resolve()
    await ended()
    const before = waits.length
    for (let index = 0; index < 1_001; index++) lost.release(`t${index}`, `cus_${index}`, GONE)
    expect(waits.length - before).toBe(1_000)
  })
})
