import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { refuseDamagedLedger } from '../../../src/host/stack/damaged-ledger.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'

const PAGE = 4_096

let directory = ''
let file = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-damaged-'))
  file = join(directory, 'ledger.sqlite')
  const database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE a (x TEXT); CREATE TABLE b (x TEXT)')
  const insert = database.prepare('INSERT INTO b VALUES (?)')
  for (let row = 0; row < 20; row += 1) insert.run('x'.repeat(PAGE / 2))
  database.close()
})
afterEach(() => rmSync(directory, { recursive: true }))

async function overwrite(from: number, bytes: number): Promise<void> {
  const handle = await open(file, 'r+')
  await handle.write(new Uint8Array(bytes).fill(0xa5), 0, bytes, from)
  await handle.close()
}

describe('the ledger of an embedded engine', () => {
  it('is taken as it is where it is whole, and nothing is left beside it', () => {
    expect(() => refuseDamagedLedger(file)).not.toThrow()
    expect(readdirSync(directory)).toEqual(['ledger.sqlite'])
  })

  it('is taken while another process writes it', () => {
    const writer = new DatabaseSync(file)
    writer.exec("BEGIN IMMEDIATE; INSERT INTO a VALUES ('later')")
    expect(() => refuseDamagedLedger(file)).not.toThrow()
    writer.exec('COMMIT')
    expect(writer.prepare('SELECT COUNT(*) AS n FROM a').get()).toEqual({ n: 1 })
    writer.close()
  })

  it('is made by the engine where there is none yet, or only an empty file', () => {
    expect(() => refuseDamagedLedger(join(directory, 'none.sqlite'))).not.toThrow()
    writeFileSync(file, '')
    expect(() => refuseDamagedLedger(file)).not.toThrow()
  })

  it.each([
    ['is something else', 'file is not a database', () => overwrite(0, 2 * PAGE)],
    [
      'lost its end',
      'database disk image is malformed',
      async () => truncateSync(file, statSync(file).size / 2),
    ],
    [
      'has a table that cannot be read',
      'database disk image is malformed',
      () => overwrite(PAGE, 2 * PAGE),
    ],
  ])('is refused by name where it %s', async (_what, reason, damage) => {
    await damage()
    expect(() => refuseDamagedLedger(file)).toThrow(StartError)
    expect(() => refuseDamagedLedger(file)).toThrow(
      `${file}, the ledger, is damaged (${reason}): restore it from a backup (docs/operations.md, "Backup and restore")`,
    )
  })
})
