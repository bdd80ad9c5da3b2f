import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { moveLedger } from '../../../src/host/serve/move-ledger.ts'
import { EMBEDDED_LEDGERS, type EmbeddedEngine } from '../../../src/host/stack/ledger-dir.ts'
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

const fileOf = (engine: EmbeddedEngine) => join(path, 'storage', EMBEDDED_LEDGERS[engine])

const FIND = { sql: 'SELECT name, value FROM secrets ORDER BY name', params: [] }
const NAMES = ['after', 'before']

function insert(name: string): Statement {
  return {
    sql: 'INSERT INTO secrets (name, value, created_at) VALUES (?, ?, 0)',
    params: [name, 'x'],
  }
}

/** Makes a ledger of the sqlite engine with rows of some 500 characters, and leaves it as a process that was killed does. */
async function killedLedger(rows: number): Promise<void> {
  mkdirSync(dirname(fileOf('sqlite')), { recursive: true })
  const file = openForWriting(fileOf('sqlite'))
  await sqliteDatabase(file).batch([
    { sql: 'CREATE TABLE secrets (name TEXT, value TEXT)', params: [] },
    { sql: 'CREATE INDEX names ON secrets (name)', params: [] },
    ...Array.from({ length: rows }, (_, index) => ({
      sql: 'INSERT INTO secrets VALUES (?, ?)',
      params: [`row ${index}`, 'x'.repeat(500)],
    })),
  ])
  const log = `${fileOf('sqlite')}-wal`
  copyFileSync(log, join(path, 'log'))
  file.close()
  renameSync(join(path, 'log'), log)
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

/** Runs the command itself, by a line of the shell. */
function moveCommand(line: string, stateDir: string, to: EmbeddedEngine) {
  const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))
  const words = [main, 'serve', 'move-ledger', '--to', to, '--state-dir', stateDir]
  return spawnSync('/bin/sh', ['-c', line, process.execPath, ...words], { encoding: 'utf8' })
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

  it.each([
    [
      'no state directory',
      'none',
      (at: string) => `there is no state directory ${at}: name that of the router (--state-dir)`,
    ],
    [
      'a file in its place',
      'file',
      (at: string) => `there is no state directory ${at}: name that of the router (--state-dir)`,
    ],
    [
      'no ledger in it',
      '.',
      (at: string) =>
        `there is no ledger of STORAGE=durable-object to move: ${join(at, 'storage', EMBEDDED_LEDGERS['durable-object'])} is missing`,
    ],
  ])('as a command makes and changes nothing where there is %s', (_, name, message) => {
    writeFileSync(join(path, 'file'), '')
    chmodSync(path, 0o755)
    const at = resolve(path, name)
    const { stderr, status } = moveCommand('exec "$0" "$@"', at, 'sqlite')
    expect({ stderr, status }).toEqual({ stderr: `error: ${message(at)}\n`, status: 1 })
    expect(readdirSync(path)).toEqual(['file'])
    expect(statSync(path).mode & 0o777).toBe(0o755)
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

  it('refuses an empty file, in which a router would begin anew without a word', () => {
    mkdirSync(dirname(fileOf('durable-object')), { recursive: true })
    writeFileSync(fileOf('durable-object'), '')
    expect(() => moveLedger(state(), 'sqlite')).toThrow(StartError)
    expect(() => moveLedger(state(), 'sqlite')).toThrow(
      `${fileOf('durable-object')} is empty: restore it from a backup first`,
    )
    const there = [fileOf('sqlite'), fileOf('durable-object')].map((file) => existsSync(file))
    expect(there).toEqual([false, true])
  })

  it('refuses a damaged one, and leaves it where it is', async () => {
    await killedLedger(200)
    rmSync(`${fileOf('sqlite')}-wal`)
    truncateSync(fileOf('sqlite'), 16_384)
    expect(() => moveLedger(state(), 'durable-object')).toThrow(
      `${fileOf('sqlite')} is damaged: restore it from a backup first`,
    )
    expect([fileOf('sqlite'), fileOf('durable-object')].map(existsSync)).toEqual([true, false])
    expect(() => openForReading(fileOf('sqlite')).close()).not.toThrow()
  })

  it('refuses where the write-ahead log of another ledger lies in the place of the copy, which SQLite would take for its own', async () => {
    await killedLedger(20)
    rmSync(fileOf('sqlite'))
    await inDurableObject(insert('before'))
    const log = `${fileOf('sqlite')}-wal`
    expect(() => moveLedger(state(), 'sqlite')).toThrow(StartError)
    expect(() => moveLedger(state(), 'sqlite')).toThrow(
      `${log} is left of another ledger, and would be taken for a part of this one: move it away`,
    )
    expect([fileOf('durable-object'), fileOf('sqlite'), log].map(existsSync)).toEqual([
      true,
      false,
      true,
    ])
    rmSync(log)
    expect(moveLedger(state(), 'sqlite').rows).toBeGreaterThan(0)
  })

  it('leaves no write-ahead log in the place of the former file, for the next ledger there', async () => {
    await killedLedger(20)
    moveLedger(state(), 'durable-object')
    expect(readdirSync(join(path, 'storage'))).toEqual(['cmr-ledger', 'ledger.sqlite.moved'])
  })

  it('that finds the disk full says so, and takes none of what is left of it', async () => {
    await killedLedger(2_000)
    // The size that a file may have, in blocks of 512 bytes, is SQLite's full disk.
    const run = moveCommand('ulimit -f 1000; exec "$0" "$@"', path, 'durable-object')
    const copy = `${fileOf('durable-object')}.new`
    expect(run.stderr).toContain(`error: ${fileOf('sqlite')} cannot be copied to ${copy}: `)
    expect(run.status).toBe(1)
    expect(readdirSync(dirname(copy))).toEqual([])
    expect(existsSync(fileOf('sqlite'))).toBe(true)
  })
})
