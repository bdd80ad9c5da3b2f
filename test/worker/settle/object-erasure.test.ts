import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { insertCustomer } from '../../../src/worker/admin/customers.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { addCustomer, NOW, receiptOf, settlementOf } from '../../support/ledger.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd } from '../../support/workerd.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cmr-test-erasure-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Which of the markers are in any database file, once what is still in a WAL has been taken over. */
async function leftInFiles(markers: readonly string[]): Promise<readonly string[]> {
  const folder = join(directory, 'cmr-ledger')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sqlite'))
  const left = new Set<string>()
  for (const name of names) {
    const db = new DatabaseSync(join(folder, name))
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    const file = await readFile(join(folder, name), 'latin1')
    for (const marker of markers) if (file.includes(marker)) left.add(marker)
  }
  return [...left]
}

test('a Durable Object keeps nothing of an expired body in its file, though it is never vacuumed', async () => {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  const workerd = await startWorkerd({ script, text: {}, directory })
  const storage = remoteStorage((body) =>
    fetch(`http://127.0.0.1:${workerd.port}/`, { method: 'POST', body }),
  )
  const db = storage.customer('acme')
  const key = await addCustomer(db, { billing: 'postpaid' })
  const settle = (i: number) => {
    const jws = `marker-${i}.`.repeat(20 + 25 * i)
    const receipt = { ...receiptOf(`receipt-${i}`, { expiresAtMs: NOW + 1 + (i % 2) }), jws }
    return commitSettlement(db, settlementOf(key, `request-${i}`, { receipt }))
  }
  const numbers = Array.from({ length: 60 }, (_, i) => i)
  await Promise.all(numbers.map(settle))
  expect(await sweepAll(db, NOW + 1)).toMatchObject({ expired: 30, cleared: 30 })
  await workerd.stop()
  const living = numbers.filter((i) => i % 2 === 1).map((i) => `marker-${i}.`)
  const expired = numbers.filter((i) => i % 2 === 0).map((i) => `marker-${i}.`)
  expect(await leftInFiles(living)).toEqual(living)
  expect(await leftInFiles(expired)).toEqual([])
})

test('a Durable Object does not let its former bytes be zeroed by SQLite, which is why they are overwritten', async () => {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  const workerd = await startWorkerd({ script, text: {}, directory })
  onTestFinished(() => workerd.stop())
  const storage = remoteStorage((body) =>
    fetch(`http://127.0.0.1:${workerd.port}/`, { method: 'POST', body }),
  )
  for (const sql of ['PRAGMA secure_delete = FAST', 'PRAGMA wal_checkpoint']) {
    const refused = storage.directory().batch([{ sql, params: [] }])
    await expect(refused).rejects.toThrow('not authorized: SQLITE_AUTH')
  }
})

test('a Durable Object keeps nothing of the name of an erased customer in its file', async () => {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  const workerd = await startWorkerd({ script, text: {}, directory })
  const storage = remoteStorage((body) =>
    fetch(`http://127.0.0.1:${workerd.port}/`, { method: 'POST', body }),
  )
  const names = Array.from({ length: 8 }, (_, i) => `Müßiggang (${i}), end-of-${i}.`)
  for (const [i, name] of names.entries()) {
    const terms = { plan: 'standard', billing: 'prepaid', receiptRetentionDays: null } as const
    const customer = { name, balanceNano: 1n, ...terms }
    await insertCustomer(storage.customer(`named-${i}`), `named-${i}`, customer, NOW)
  }
  for (const i of names.keys()) {
    await beginErasure(storage.customer(`named-${i}`), `named-${i}`, `ledger-${i}`, NOW)
  }
  await workerd.stop()
  expect(await leftInFiles(names.map((_, i) => `end-of-${i}.`))).toEqual([])
})
