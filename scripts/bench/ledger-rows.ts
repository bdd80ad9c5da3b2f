import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Puts old ledger rows into the SQLite file that holds a customer, while no worker has it open. Only the storage knows
 * which file that is, so all files are searched. Only the benchmark writes rows this way: a million requests would take
 * an hour.
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

function insert(database: DatabaseSync, customerId: string, count: number): void {
  database.exec('BEGIN')
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, region,
        billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano, discount_pct, usd_eur,
        receipt_id, failover)
      SELECT 'old-' || i, ?, i, 1700000000000 + i, 'cmr_old', 'direct/whole', 'chat', 'direct', 'eu',
        'token', NULL, 21, 14, 43400, 0, NULL, NULL, 0 FROM n`,
    )
    .run(count, customerId)
  database
    .prepare('UPDATE customers SET usage_count = usage_count + ? WHERE customer_id = ?')
    .run(count, customerId)
  database.exec('COMMIT')
}
