import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { entryOf } from '../../../src/worker/settle/ledger.ts'
import { addCustomer, readLedgerTotals, receiptOf, settlementOf } from '../../support/ledger.ts'
import { openEmbedded } from '../../support/sqlite-store.ts'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-former-journal-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const FORMER_SLOTS = 128
const FORMER_LENGTH = 32_768

/** A ledger as the release before left it: slots of 32,768 characters, the second and third of them in use. */
async function leaveFormer(path: string): Promise<void> {
  const db = await openEmbedded(path)
  const key = await addCustomer(db, { balance: 1_000n })
  const entry = (id: string) =>
    JSON.stringify(
      entryOf(settlementOf(key, id, { nano: 7n, receipt: receiptOf(`secret receipt of ${id}`) })),
    )
  const slot = (number: number, ...entries: readonly string[]) =>
    [number, ...entries, ''].join('\n').padEnd(FORMER_LENGTH, '0')
  db.connection.exec('DELETE FROM journal')
  const insert = db.connection.prepare('INSERT INTO journal (slot, entries) VALUES (?, ?)')
  for (let index = 0; index < FORMER_SLOTS; index++) insert.run(index, '0'.repeat(FORMER_LENGTH))
  const use = db.connection.prepare('UPDATE journal SET entries = ? WHERE slot = ?')
  use.run(slot(8, entry('c')), 1)
  use.run(slot(7, entry('a'), entry('b')), 2)
  db.connection.close()
}

const count = (path: string, text: string) => {
  const connection = new DatabaseSync(path)
  const found = connection.prepare(text).get()?.['n']
  connection.close()
  return found
}

test('the journal of an older release is folded at the first start, in its order, and makes way for the new one', async () => {
  const path = join(directory, 'former.sqlite')
  await leaveFormer(path)
  const db = await openEmbedded(path)
  expect(await readLedgerTotals(db)).toMatchObject({ balance: 1_000n - 21n, rows: 3 })
  const [order] = await db.batch([{ sql: 'SELECT id FROM usage ORDER BY seq', params: [] }])
  expect(order).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
  db.connection.close()
  const former = `SELECT COUNT(*) AS n FROM journal WHERE LENGTH(entries) = ${FORMER_LENGTH}`
  expect(count(path, former)).toBe(0)
  expect(count(path, 'SELECT COUNT(*) AS n FROM journal WHERE slot >= 0')).toBe(1_024)

  const again = await openEmbedded(path)
  expect(await readLedgerTotals(again)).toMatchObject({ balance: 1_000n - 21n, rows: 3 })
  again.connection.close()
})

test('a start that is killed in any step of that loses nothing and bills nothing twice', async () => {
  const former = join(directory, 'left.sqlite')
  await leaveFormer(former)
  for (let steps = 0; ; steps++) {
    const path = join(directory, `killed-${steps}.sqlite`)
    copyFileSync(former, path)
    let taken = 0
    const step = () => {
      taken += 1
      if (taken > steps) throw new Error('killed')
    }
    const killed = await openEmbedded(path, (store) => ({
      ...store,
      run: (text, params) => {
        if (text.includes('journal') || text.includes('usage')) step()
        return store.run(text, params)
      },
    })).catch(() => undefined)
    killed?.connection.close()
    const db = await openEmbedded(path)
    expect(await readLedgerTotals(db)).toMatchObject({ balance: 1_000n - 21n, rows: 3 })
    db.connection.close()
    rmSync(path)
    if (killed !== undefined) break
    // Making the new slots is one step after another of the same kind.
    if (steps > 25) steps += 300
  }
}, 60_000)
