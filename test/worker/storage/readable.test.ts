import { expect, it } from 'vitest'
import { concernsLedger } from '../../../src/worker/storage/concerns-ledger.ts'
import type { Statement } from '../../../src/worker/storage/database.ts'
import { migrate } from '../../../src/worker/storage/migrate.ts'
import { SQLITE_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import { confirmReadable } from '../../../src/worker/storage/readable.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

async function migrated() {
  const database = openSqlite(':memory:', { migrate: false })
  await migrate(database, SQLITE_MIGRATIONS)
  return database
}

it('a database with all tables of the schema can be read, whichever engine asks', async () => {
  const database = await migrated()
  for (const engine of ['durable-object', 'sqlite', 'd1', 'postgres'] as const)
    await expect(confirmReadable(database, engine)).resolves.toBeUndefined()
})

it.each(['customers', 'usage', 'receipts', 'api_keys', 'journal'])(
  'a SQLite database without the table %s is unavailable',
  async (table) => {
    const database = await migrated()
    database.connection.exec(`ALTER TABLE ${table} RENAME TO hidden`)
    await expect(confirmReadable(database, 'sqlite')).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: 'tables of the router are missing',
    })
  },
)

it('has an embedded engine write nothing', async () => {
  const asked: Statement[] = []
  const database = {
    batch: async (statements: readonly Statement[]) => {
      asked.push(...statements)
      return []
    },
  }
  await confirmReadable(database, 'sqlite').catch(() => {})
  expect(asked.map(concernsLedger)).toEqual([false])
})
