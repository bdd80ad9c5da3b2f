import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  commitSettlement,
  NO_RETRY,
  releaseReservation,
} from '../../../src/worker/settle/ledger.ts'
import { StorageUnavailable } from '../../../src/worker/storage/database.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import {
  addCustomer,
  askOf,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cmr-test-object-journal-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const turnOfEventLoop = () =>
  new Promise<void>((resolve) => {
    setImmediate(resolve)
  })

async function start() {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  return startWorkerd({ script, text: {}, directory })
}

const post = ({ port }: WorkerdProcess, body: string) =>
  fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body })

/** `two` calls the object for every operation. */
const databaseOf = (process: WorkerdProcess, instance = 'one') =>
  remoteStorage((body) => post(process, body), instance).directory()

test('a Durable Object that is killed keeps every settlement it answered, and settles what it has forgotten once', async () => {
  const before = await start()
  const db = databaseOf(before)
  const key = await addCustomer(db, { balance: 10_000n })
  const ids = Array.from({ length: 40 }, (_, index) => `request-${String(index).padStart(2, '0')}`)
  await Promise.all(ids.map((id) => admit(db, askOf(key, id, { nano: 100n }))))
  const settlement = (id: string) =>
    settlementOf(key, id, { nano: 7n, receipt: receiptOf(`receipt of ${id}`) })
  const answered = ids.slice(0, 30)
  await Promise.all(answered.map((id) => commitSettlement(db, settlement(id))))
  await before.stop('SIGKILL')

  const after = await start()
  const again = databaseOf(after)
  expect(await readLedgerTotals(again)).toMatchObject({ balance: 10_000n - 7n * 30n, rows: 30 })
  await Promise.all(ids.map((id) => commitSettlement(again, settlement(id))))
  const balance = 10_000n - 7n * 40n
  expect(await readLedgerTotals(again)).toMatchObject({ balance, rows: 40 })
  const receipts = { sql: `SELECT COUNT(*) AS n FROM receipts WHERE body_state = 0`, params: [] }
  expect(await again.batch([receipts])).toEqual([[{ n: 40 }]])
  await after.stop()
}, 60_000)

test('an object that loses its instance holds what was reserved before and meanwhile, without a call and with one', async () => {
  const workerd = await start()
  const [local, called] = [databaseOf(workerd), databaseOf(workerd, 'two')]
  const key = await addCustomer(local, { id: 'beta', balance: 60n })
  const ask = (id: string) => askOf(key, id, { nano: 10n })
  for (const db of [called, local, local]) await admit(db, ask(crypto.randomUUID()))
  await admit(local, ask('open'))
  await post(workerd, JSON.stringify({ instance: 'one', customer: null, breakOff: true }))
  await Promise.all([admit(local, ask('between')), admit(called, ask('after'))])
  await expect(admit(called, ask('one too many'))).rejects.toMatchObject({
    code: 'insufficient_balance',
  })
  await expect(admit(local, ask('one more too many'))).rejects.toMatchObject({
    code: 'insufficient_balance',
  })
  await commitSettlement(local, settlementOf(key, 'open', { nano: 4n }))
  expect(await readLedgerTotals(called, 'beta')).toMatchObject({ balance: 56n, reserved: 50n })
  await workerd.stop()
}, 60_000)

test.each(['one', 'two'])(
  'a settlement whose commit fails is not answered and bills nothing, and its reservation is held until it is repeated (%s)',
  async (instance) => {
    const workerd = await start()
    const db = databaseOf(workerd, instance)
    const id = `commit-${instance}`
    const key = await addCustomer(db, { id, balance: 100n })
    const settlement = (request: string) =>
      settlementOf(key, `${id}-${request}`, { nano: 7n, receipt: receiptOf(`${id}-${request}`) })
    for (const request of ['before', 'lost']) {
      await admit(db, askOf(key, `${id}-${request}`, { nano: 30n }))
    }
    await commitSettlement(db, settlement('before'))
    await admit(db, askOf(key, `${id}-beside`, { nano: 30n }))
    await post(workerd, JSON.stringify({ instance, customer: null, failCommit: true }))

    const failed = await commitSettlement(db, settlement('lost'), NO_RETRY).catch(
      (error: unknown) => error,
    )
    expect(failed).toBeInstanceOf(StorageUnavailable)
    expect(String(failed)).toMatch(/the storage object failed: .*FOREIGN KEY.*SQLITE_CONSTRAINT/)
    const books = { balance: 93n, reserved: 60n, rows: 1, open: 2 }
    expect(await readLedgerTotals(db, id)).toEqual(books)
    const one = askOf(key, `${id}-too-much`, { nano: 34n })
    await expect(admit(db, one)).rejects.toMatchObject({ code: 'insufficient_balance' })

    await commitSettlement(db, settlement('lost'))
    await commitSettlement(db, settlement('lost'))
    const after = { balance: 86n, reserved: 30n, rows: 2, open: 1 }
    expect(await readLedgerTotals(db, id)).toEqual(after)
    await workerd.stop('SIGKILL')

    const again = await start()
    expect(await readLedgerTotals(databaseOf(again, instance), id)).toEqual(after)
    await again.stop()
  },
  60_000,
)

test('settlements that are committed together are answered together or not at all, and billed once when they are repeated', async () => {
  const workerd = await start()
  const db = databaseOf(workerd)
  const key = await addCustomer(db, { id: 'together', balance: 1_000n })
  const ids = Array.from({ length: 20 }, (_, index) => `together-${index}`)
  for (const id of ids) await admit(db, askOf(key, id, { nano: 30n }))
  const settle = (id: string) => commitSettlement(db, settlementOf(key, id, { nano: 7n }), NO_RETRY)
  for (let round = 0; round < 3; round += 1) {
    await post(workerd, JSON.stringify({ instance: 'one', customer: null, failCommit: true }))
    const ends = await Promise.allSettled(ids.map(settle))
    const answered = ends.filter(({ status }) => status === 'fulfilled').length
    expect(answered).toBeLessThan(ids.length)
    const { rows } = await readLedgerTotals(db, 'together')
    expect(rows).toBeGreaterThanOrEqual(answered)
  }
  await Promise.all(ids.map(settle))
  const settled = { balance: 860n, reserved: 0n, rows: 20, open: 0 }
  expect(await readLedgerTotals(db, 'together')).toEqual(settled)
  await workerd.stop()
}, 60_000)

test('requests of one key that race without a call and with one stay within its balance and its places', async () => {
  const workerd = await start()
  const [local, called] = [databaseOf(workerd), databaseOf(workerd, 'two')]
  const key = await addCustomer(local, { id: 'race', balance: 1_000n })
  const plans = { standard: { discount_pct: 0, concurrent_requests: 5 } }
  const ask = (id: string) => askOf(key, id, { nano: 30n, plans })
  await admit(local, ask('warm'))
  await commitSettlement(local, settlementOf(key, 'warm', { nano: 10n }))
  let open = 0
  let most = 0
  let admissions = 0
  let settled = 1
  const racer = async (_: unknown, index: number) => {
    const db = index % 3 === 0 ? called : local
    const id = `race-${index}`
    const admitted = await admit(db, ask(id)).then(
      () => true,
      () => false,
    )
    if (!admitted) return
    open += 1
    admissions += 1
    most = Math.max(most, open)
    await turnOfEventLoop()
    open -= 1
    if (index % 5 === 0) {
      await releaseReservation(db, id)
      return
    }
    settled += 1
    await commitSettlement(db, settlementOf(key, id, { nano: 10n }))
  }
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: 30 }, (_, index) => racer(_, round * 30 + index)))
  }
  expect(most).toBeLessThanOrEqual(5)
  expect(admissions).toBeGreaterThanOrEqual(5)
  expect(await readLedgerTotals(called, 'race')).toMatchObject({
    balance: 1_000n - 10n * BigInt(settled),
    reserved: 0n,
    rows: settled,
  })
  const left = Math.floor((1_000 - 10 * settled) / 30)
  const all = Array.from({ length: 40 }, (_, index) =>
    admit(index % 2 === 0 ? local : called, askOf(key, `last-${index}`, { nano: 30n })),
  )
  const ends = await Promise.allSettled(all)
  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(left)
  await workerd.stop()
}, 60_000)
