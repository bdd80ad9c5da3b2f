import type { Database, Statement } from './database.ts'
import { textOf } from './row.ts'

/** One numbered step of the schema. Ids are never reused and a step that was released never changes. */
export interface Migration {
  /** `NNNN-name`. */
  readonly id: string
  readonly statements: readonly string[]
}

const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS schema_migrations (
  id TEXT NOT NULL PRIMARY KEY
)`

/**
 * Applies, in order, the migrations that a database does not have yet.
 *
 * Two instances may start at once: each migration is one batch that begins by inserting the migration's row, so on every
 * engine one of them wins, and the other's batch is rolled back completely. The loser then finds the migration applied and
 * continues. This needs no advisory lock, which connection poolers do not support.
 */
export async function migrate(db: Database, migrations: readonly Migration[]): Promise<void> {
  // In PostgreSQL two concurrent CREATE ... IF NOT EXISTS may collide; the table exists afterwards.
  await tryOr(db, [plain(CREATE_TABLE)], async () => {
    await appliedIds(db)
    return true
  })
  const applied = await appliedIds(db)
  for (const migration of migrations) {
    if (applied.has(migration.id)) continue
    const claim = { sql: 'INSERT INTO schema_migrations (id) VALUES (?)', params: [migration.id] }
    const steps = [claim, ...migration.statements.map(plain)]
    await tryOr(db, steps, async () => (await appliedIds(db)).has(migration.id))
  }
}

/** Runs a batch; ignores its failure if another instance has done the same. */
async function tryOr(
  db: Database,
  statements: readonly Statement[],
  doneByAnother: () => Promise<boolean>,
): Promise<void> {
  try {
    await db.batch(statements)
  } catch (error) {
    if (!(await doneByAnother().catch(() => false))) throw error
  }
}

async function appliedIds(db: Database): Promise<ReadonlySet<string>> {
  const [rows = []] = await db.batch([plain('SELECT id FROM schema_migrations')])
  return new Set(rows.map((row) => textOf(row, 'id')))
}

function plain(sql: string): Statement {
  return { sql, params: [] }
}
