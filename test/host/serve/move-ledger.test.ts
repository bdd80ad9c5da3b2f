import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { moveLedger } from '../../../src/host/serve/move-ledger.ts'
import { EMBEDDED_LEDGERS } from '../../../src/host/stack/ledger-dir.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'
import { openForReading, openForWriting } from '../../../src/ledger/sqlite-file.ts'
import { sqliteDatabase } from '../../../src/worker/storage/sqlite-batches.ts'
import type { Statement } from '../../../src/worker/storage/database.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd } from '../../support/workerd.ts'

let path = ''
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'cmr-test-'))
})
afterEach(() => rmSync(path, { recursive: true, force: true }))

/** As much of a state directory as is asked for here. */
const state = () => ({
  directory: (name: string) => {
    mkdirSync(join(path, name), { recursive: true })
    return join(path, name)
  },
})

const fileOf = (engine: keyof typeof EMBEDDED_LEDGERS) =>
  join(path, 'storage', EMBEDDED_LEDGERS[engine])

const FIND = { sql: 'SELECT name, value FROM secrets ORDER BY name', params: [] }
const NAMES = ['after', 'before']

function insert(name: string): Statement {
  return {
    sql: 'INSERT INTO secrets (name, value, created_at) VALUES (?, ?, 0)',
    params: [name, 'x'],
  }
}

/** Works on the ledger of a real Durable Object. */
async function inDurableObject(statement: Statement) {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  const directory = state().directory('storage')
  const workerd = await startWorkerd({ script, text: {}, directory })
  try {
    const url = `http://127.0.0.1:${workerd.port}/`
    const storage = remoteStorage((body) => fetch(url, { method: 'POST', body }))
    return (await storage.directory().batch([statement]))[0]
  } finally {
    await workerd.stop()
  }
}

describe('moving the ledger to the other embedded engine', () => {
  it('takes every row along, from a real Durable Object to SQLite and back', async () => {
    await inDurableObject(insert('before'))
    const there = moveLedger(state(), 'sqlite')
    expect(there).toMatchObject({
      file: fileOf('sqlite'),
      former: `${fileOf('durable-object')}.moved`,
    })
    expect([fileOf('durable-object'), `${fileOf('durable-object')}.moved`].map(existsSync)).toEqual(
      [false, true],
    )
    const file = openForWriting(fileOf('sqlite'))
    await sqliteDatabase(file).batch([insert('after')])
    file.close()

    const back = moveLedger(state(), 'durable-object')
    expect(back.rows).toBe(there.rows + 1)
    expect(existsSync(fileOf('sqlite'))).toBe(false)
    const rows = (await inDurableObject(FIND)) ?? []
    expect(rows.map(({ name }) => name).filter((name) => NAMES.includes(String(name)))).toEqual(
      NAMES,
    )
  })

  it('refuses where there is none', () => {
    expect(() => moveLedger(state(), 'sqlite')).toThrow(StartError)
    expect(() => moveLedger(state(), 'sqlite')).toThrow(
      `there is no ledger of STORAGE=durable-object to move: ${fileOf('durable-object')} is missing`,
    )
  })

  it('refuses where there are two, and touches neither', () => {
    for (const engine of ['sqlite', 'durable-object'] as const) {
      mkdirSync(dirname(fileOf(engine)), { recursive: true })
      writeFileSync(fileOf(engine), '')
    }
    expect(() => moveLedger(state(), 'sqlite')).toThrow(
      `${fileOf('sqlite')} is there already, beside ${fileOf('durable-object')}`,
    )
    expect([fileOf('sqlite'), fileOf('durable-object')].map(existsSync)).toEqual([true, true])
  })

  it('refuses a damaged one, and leaves it where it is', async () => {
    mkdirSync(dirname(fileOf('sqlite')), { recursive: true })
    const file = openForWriting(fileOf('sqlite'))
    await sqliteDatabase(file).batch([
      { sql: 'CREATE TABLE secrets (name TEXT, value TEXT)', params: [] },
      { sql: 'CREATE INDEX names ON secrets (name)', params: [] },
      ...Array.from({ length: 200 }, (_, index) => ({
        sql: 'INSERT INTO secrets VALUES (?, ?)',
        params: [`row ${index}`, 'x'.repeat(500)],
      })),
    ])
    file.close()
    truncateSync(fileOf('sqlite'), 16_384)
    expect(() => moveLedger(state(), 'durable-object')).toThrow(
      `${fileOf('sqlite')} is damaged: restore it from a backup first`,
    )
    expect([fileOf('sqlite'), fileOf('durable-object')].map(existsSync)).toEqual([true, false])
    expect(() => openForReading(fileOf('sqlite')).close()).not.toThrow()
  })
})
