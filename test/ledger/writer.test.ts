import { cpSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Writer } from '../../src/ledger/writer.ts'
import { messageOfThrown } from '../../src/protocol/thrown-message.ts'
import { admit } from '../../src/worker/settle/admit.ts'
import { commitSettlement, entryOf, releaseReservation } from '../../src/worker/settle/ledger.ts'
import { rowsOf } from '../../src/worker/storage/batch-outcome.ts'
import type { Database } from '../../src/worker/storage/database.ts'
import { ledgerBehind, type LedgerCall } from '../../src/worker/storage/ledger-calls.ts'
import { sql } from '../../src/worker/storage/sql.ts'
import { addCustomer, askOf, NOW, readLedgerTotals, settlementOf } from '../support/ledger.ts'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-writer-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const writers = new Map<string, Writer>()

async function settledBy(path: string, call: LedgerCall) {
  const [outcome] = (await writers.get(path)?.operations([call])) ?? []
  return outcome
}

/** A writer as its process has it. One that is opened over another stands for a process that was killed and started again. */
async function open(path: string): Promise<Database> {
  const writer = await Writer.open(path, () => NOW)
  writers.set(path, writer)
  return {
    batch: async (statements) => {
      const [answer] = await writer.batches([statements])
      if (answer === undefined) throw new Error('a batch was left unanswered')
      return rowsOf(answer.outcome)
    },
    ledger: ledgerBehind(async (call) => {
      const [outcome] = await writer.operations([call])
      if (outcome === undefined) throw new Error('an operation was left unanswered')
      return outcome
    }),
  }
}

test('a writer that follows a killed one holds every open reservation, whatever its key may do by now', async () => {
  const path = join(directory, 'killed.sqlite')
  const killed = await open(path)
  const key = await addCustomer(killed, { balance: 1_000n })
  await killed.batch([
    sql`UPDATE api_keys SET tokens_per_minute = 10, requests_per_minute = 9 WHERE customer_id = 'acme'`,
  ])
  await admit(killed, askOf(key, 'early', { nano: 100n }))
  await releaseReservation(killed, 'early')
  // Its window is in the tables.
  await readLedgerTotals(killed)
  for (const id of ['open 1', 'open 2', 'released', 'settled']) {
    await admit(killed, askOf(key, id, { nano: 100n }))
  }
  await releaseReservation(killed, 'released')
  // Its tokens end the window of the key for others.
  await commitSettlement(killed, settlementOf(key, 'settled', { nano: 7n, promptTokens: 500 }))
  await expect(admit(killed, askOf(key, 'refused', { nano: 100n }))).rejects.toThrow('tokens')

  const next = await open(path)
  expect(await readLedgerTotals(next)).toEqual({ balance: 993n, reserved: 200n, rows: 1, open: 2 })
  const [windows] = await next.batch([sql`SELECT window_requests FROM api_keys`])
  // Of the requests since then, the released one is gone.
  expect(windows).toEqual([{ window_requests: 4 }])
  await commitSettlement(next, settlementOf(key, 'open 1', { nano: 5n }))

  const last = await open(path)
  expect(await readLedgerTotals(last)).toEqual({ balance: 988n, reserved: 100n, rows: 2, open: 1 })
  await releaseReservation(last, 'open 2')
  expect(await readLedgerTotals(last)).toEqual({ balance: 988n, reserved: 0n, rows: 2, open: 0 })
})

test('a settlement that came in time is made, and one whose answer nobody awaits any more is not', async () => {
  const path = join(directory, 'late.sqlite')
  const db = await open(path)
  const key = await addCustomer(db, { balance: 1_000n })
  for (const id of ['late', 'in time']) await admit(db, askOf(key, id, { nano: 100n }))
  const settle = (id: string, until: number) =>
    settledBy(path, { kind: 'settle', entry: entryOf(settlementOf(key, id, { nano: 7n })), until })
  expect(await settle('late', NOW - 1)).toEqual({
    ok: false,
    unavailable: true,
    message: 'the settlement came too late',
  })
  expect(await settle('in time', NOW)).toMatchObject({ ok: true, kind: 'settle' })
  expect(await readLedgerTotals(db)).toEqual({ balance: 993n, reserved: 100n, rows: 1, open: 1 })
})

/** Why a request was not admitted, or not settled; empty: it was. By then the ledger may have noticed before the admission. */
async function refusalOf(path: string, db: Database, id: string): Promise<string> {
  const key = { customerId: 'acme', keyPrefix: 'cmr_acme_k1', keyHash: 'hash of cmr_acme_k1' }
  const refused = await admit(db, askOf(key, id, { nano: 10n })).then(
    () => undefined,
    messageOfThrown,
  )
  if (refused !== undefined) return refused
  const entry = entryOf(settlementOf(key, id, { nano: 7n }))
  const outcome = await settledBy(path, { kind: 'settle', entry })
  if (outcome?.ok !== false) return ''
  expect(outcome.unavailable).toBe(true)
  return outcome.message
}

test('nothing is settled into a file that was moved away or replaced by a backup, and all goes on once it is back', async () => {
  const path = join(directory, 'moved.sqlite')
  const db = await open(path)
  await addCustomer(db, { balance: 1_000n })
  expect(await refusalOf(path, db, 'before')).toBe('')
  const moved = 'the file of the database was moved or replaced: SQLITE_READONLY'
  cpSync(path, `${path}.backup`)
  renameSync(path, `${path}.aside`)
  expect(await refusalOf(path, db, 'gone')).toBe(moved)
  cpSync(`${path}.backup`, path)
  expect(await refusalOf(path, db, 'replaced')).toBe(moved)
  await expect(db.batch([sql`SELECT seq FROM usage`])).rejects.toMatchObject({
    name: 'StorageUnavailable',
    message: moved,
  })
  renameSync(`${path}.aside`, path)
  expect(await refusalOf(path, db, 'after')).toBe('')
  expect(await readLedgerTotals(db)).toMatchObject({ balance: 986n, rows: 2 })
})

test('nothing is settled into a file that was cut short, and its log is left for whoever mends it', async () => {
  const path = join(directory, 'short.sqlite')
  const db = await open(path)
  await addCustomer(db, { balance: 1_000n })
  // Into the file, which is then longer.
  writers.get(path)?.close()
  const next = await open(path)
  expect(await refusalOf(path, next, 'before')).toBe('')
  const { size } = statSync(`${path}-wal`)
  truncateSync(path, 4_096)
  expect(await refusalOf(path, next, 'short')).toBe(
    'the file of the database was cut short: SQLITE_CORRUPT',
  )
  expect(statSync(`${path}-wal`).size).toBe(size)
})

test('whoever removes the write-ahead log loses no settlement that was answered', async () => {
  const path = join(directory, 'log.sqlite')
  const db = await open(path)
  await addCustomer(db, { balance: 1_000n })
  expect(await refusalOf(path, db, 'before')).toBe('')
  rmSync(`${path}-wal`)
  expect(await refusalOf(path, db, 'without')).toBe(
    'the write-ahead log of the database was removed: SQLITE_READONLY',
  )
  // As after a crash: the next process has only what is at the paths.
  const copy = join(directory, 'log-copy.sqlite')
  cpSync(path, copy)
  const next = await open(copy)
  expect(await readLedgerTotals(next)).toMatchObject({ balance: 993n, rows: 1 })
})
