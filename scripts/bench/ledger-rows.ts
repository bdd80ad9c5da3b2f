import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Inserts old ledger rows into the SQLite file of a customer, while no worker has it open. Only the storage engine
 * knows which file that is, so this searches all files. Writing rows directly is for the benchmark only: making them
 * with a million requests would take an hour.
 */
export function addLedgerRows(storageDir: string, customerId: string, count: number): void {
  const names = readdirSync(storageDir, { recursive: true, encoding: 'utf8' })
  for (const name of names.filter((each) => each.endsWith('.sqlite'))) {
    const database = new DatabaseSync(join(storageDir, name))
    try {
      if (holds(database, customerId)) return insert(database, customerId, count)
    } finally {
      database.close()
    }
  }
  throw new Error('no file holds the customer')
}

function holds(database: DatabaseSync, customerId: string): boolean {
  const tables = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'customers'").all()
  if (tables.length === 0) return false
  return (
    database.prepare('SELECT 1 FROM customers WHERE customer_id = ?').all(customerId).length > 0
  )
}

/**
 * Fast enough for ten million rows: without sync and rollback journal, and with the indexes built at the end, from
 * sorted keys.
 */
function insert(database: DatabaseSync, customerId: string, count: number): void {
  const journal = database.prepare('PRAGMA journal_mode').get()?.['journal_mode']
  // A file in WAL mode has to leave it first.
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF')
  database.exec('PRAGMA cache_size = -262144')
  const indexes = database
    .prepare(
      "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'usage' AND sql IS NOT NULL",
    )
    .all()
  database.exec('BEGIN')
  for (const { name } of indexes) database.exec(`DROP INDEX ${String(name)}`)
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, region,
        billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano, discount_pct, usd_eur,
        receipt_id, failover)
      SELECT printf('old-%012d', i), ?, i, 1700000000000 + i, 'cmr_old', 'direct/whole', 'chat', 'direct', 'eu',
        'token', NULL, 21, 14, 43400, 0, NULL, NULL, 0 FROM n`,
    )
    .run(count, customerId)
  database
    .prepare('UPDATE customers SET usage_count = usage_count + ? WHERE customer_id = ?')
    .run(count, customerId)
  for (const { sql } of indexes) database.exec(String(sql))
  database.exec('COMMIT')
  database.exec(`PRAGMA journal_mode = ${String(journal)}`)
}
