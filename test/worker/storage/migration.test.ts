import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import postgres from 'postgres'
import { afterAll, describe, expect, test } from 'vitest'
import { listKeysOf, updateKey } from '../../../src/worker/admin/keys.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import type { Database, Row } from '../../../src/worker/storage/database.ts'
import { migrate } from '../../../src/worker/storage/migrate.ts'
import { MIGRATIONS, SQLITE_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { sqliteFiles } from '../../support/crash/ledger-access.ts'
import { askOf, NOW, readLedgerTotals, rejectionOf, settlementOf } from '../../support/ledger.ts'
import { startPostgres } from '../../support/postgres.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { openSqlite } from '../../support/sqlite-database.ts'
import { startWorkerd } from '../../support/workerd.ts'

/**
 * A database that the first release filled is taken over by the newest schema, on every engine. The rows are compared
 * whole, so that each column that a migration adds must say here what old rows have in it.
 */

const WORKER = 'test/support/worker/storage-worker.ts'

const [FIRST] = MIGRATIONS

const customerRow = (id: string, billing: string, balance: number, reserved: number) =>
  `INSERT INTO customers (customer_id, name, plan, billing, balance_nano, reserved_nano,
    receipt_retention_days, usage_count, last_usage_at, turn, turn_nano, created_at)
  VALUES ('${id}', 'name of ${id}', 'standard', '${billing}', ${balance}, ${reserved},
    30, 3, ${NOW - 1}, 'last request', 7, ${NOW - 9})`

const keyRow = (name: string, deletedAt: number | null) =>
  `INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, window_started_at,
    window_requests, created_at, deleted_at)
  VALUES ('old', 'cmr_old_${name}', 'hash of cmr_old_${name}', 'name of ${name}', ${NOW - 5}, 2,
    ${NOW - 8}, ${deletedAt})`

const usageRow = (seq: number, key: string, cost: number) =>
  `INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, region,
    billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano, discount_pct, usd_eur,
    receipt_id, failover)
  VALUES ('r${seq}', 'old', ${seq}, ${NOW - 10 + seq}, 'cmr_old_${key}', 'nova/glm-5', 'chat', 'nova', 'eu',
    'token', NULL, 10, 5, ${cost}, 15, '0.86', 'receipt-${seq}', 1)`

const LARGEST = Number.MAX_SAFE_INTEGER

/** What the first release left. */
const OLD_ROWS = [
  customerRow('old', 'prepaid', 100, 40),
  customerRow('other', 'postpaid', -5, 0),
  keyRow('k1', null),
  keyRow('k2', null),
  keyRow('k3', NOW - 2),
  usageRow(1, 'k1', 30),
  usageRow(2, 'k2', LARGEST),
  usageRow(3, 'k1', 12),
  `INSERT INTO credits (customer_id, reference, amount_nano, created_at)
    VALUES ('old', 'opening', ${BigInt(LARGEST) + 142n}, ${NOW - 9})`,
  `INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano, created_at, expires_at)
    VALUES ('at-work', 'old', 'cmr_old_k1', 40, ${NOW - 1}, ${NOW + 60_000})`,
  `INSERT INTO receipts (customer_id, receipt_id, jws, sha256, kid, evidence_refs, model, provider,
      prompt_tokens, completion_tokens, created_at, expires_at)
    VALUES ('old', 'receipt-1', 'a.b.c', 's', 'k', '[]', 'nova/glm-5', 'nova', 10, 5, ${NOW - 9}, ${NOW + 9})`,
]

const OLD = [
  'CREATE TABLE IF NOT EXISTS schema_migrations (id TEXT NOT NULL PRIMARY KEY)',
  `INSERT INTO schema_migrations (id) VALUES ('${FIRST?.id}')`,
  ...(FIRST?.statements ?? []),
  ...OLD_ROWS,
]

interface Running {
  readonly db: Database
  readonly stop: () => Promise<void>
}

/** Every engine: how the old statements come into its database, before a new worker opens it. */
const ENGINES: Readonly<Record<string, (old: readonly string[]) => Promise<Running>>> = {
  'SQLite in Node': async (old) => {
    const db = openSqlite(':memory:', { migrate: false })
    for (const statement of old) db.connection.exec(statement)
    await migrate(db, SQLITE_MIGRATIONS)
    return { db, stop: async () => db.connection.close() }
  },

  'Durable Objects of plain workerd': async (old) => {
    const directory = await mkdtemp(join(tmpdir(), 'cmr-test-migration-'))
    const script = await bundleForWorkerd(WORKER)
    const start = () => startWorkerd({ script, text: {}, directory })
    const storageOf = (port: number) =>
      remoteStorage((body) => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body }))
    const before = await start()
    await storageOf(before.port)
      .directory()
      .batch([{ sql: 'SELECT 1 AS one', params: [] }])
    await before.stop()
    for (const file of sqliteFiles(join(directory, 'cmr-ledger'))) rewind(file, old)
    const after = await start()
    const stop = async () => {
      await after.stop()
      await rm(directory, { recursive: true, force: true })
    }
    return { db: storageOf(after.port).directory(), stop }
  },

  D1: async (old) => {
    const miniflare = new Miniflare(
      convertV4MiniflareOptions({
        modules: true,
        script: await bundleForWorkerd(WORKER),
        compatibilityDate: '2026-11-17',
        bindings: { STORAGE: 'd1' },
        d1Databases: ['DB'],
      }),
    )
    const binding = await miniflare.getD1Database('DB')
    for (const statement of old) await binding.prepare(statement).run()
    const fetcher = (body: string) =>
      miniflare.dispatchFetch('http://worker/', { method: 'POST', body })
    return { db: remoteStorage(fetcher).directory(), stop: () => miniflare.dispose() }
  },

  PostgreSQL: async (old) => {
    const server = await startPostgres()
    const url = await server.createDatabase()
    const connection = postgres(url, { max: 1, onnotice: () => {} })
    for (const statement of old) await connection.unsafe(statement)
    await connection.end()
    const script = await bundleForWorkerd(WORKER)
    const workerd = await startWorkerd({ script, text: { STORAGE: 'postgres', DATABASE_URL: url } })
    const address = `http://127.0.0.1:${workerd.port}/`
    const storage = remoteStorage((body) => fetch(address, { method: 'POST', body }))
    const stop = async () => {
      await workerd.stop()
      await server.stop()
    }
    return { db: storage.directory(), stop }
  },
}

/** Makes a file of today one of the old release; of its tables those of the runtime stay. */
function rewind(file: string, old: readonly string[]): void {
  const db = new DatabaseSync(file)
  const tables = db
    .prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
    )
    .all()
    .map((row) => String(row['name']))
  if (tables.includes('customers')) {
    for (const table of tables) db.exec(`DROP TABLE ${table}`)
    for (const statement of old) db.exec(statement)
  }
  db.close()
}

const running: Running[] = []
afterAll(() => Promise.all(running.map(({ stop }) => stop())))

async function rowsOf(db: Database, table: string, order: string): Promise<readonly Row[]> {
  const [rows = []] = await db.batch([
    { sql: `SELECT * FROM ${table} ORDER BY ${order}`, params: [] },
  ])
  return rows
}

describe.each(Object.entries(ENGINES))(
  'a database of the first release on %s',
  (_engine, start) => {
    test(
      'has the right value in every new column, and goes on where it was',
      { timeout: 60_000 },
      async () => {
        const engine = await start(OLD)
        running.push(engine)
        const { db } = engine

        const customer = {
          plan: 'standard',
          receipt_retention_days: 30,
          usage_count: 3,
          last_usage_at: NOW - 1,
          lock_request_id: 'last request',
          lock_reserve_nano: 7,
          created_at: NOW - 9,
          suspended_at: null,
          erased_at: null,
          erased_keys: 0,
          alert_balance_nano: null,
          alert_key_limit_pct: null,
        }
        expect(await rowsOf(db, 'customers', 'customer_id')).toEqual([
          {
            ...customer,
            customer_id: 'old',
            name: 'name of old',
            billing: 'prepaid',
            balance_nano: 100,
            reserved_nano: 40,
          },
          {
            ...customer,
            customer_id: 'other',
            name: 'name of other',
            billing: 'postpaid',
            balance_nano: -5,
            reserved_nano: 0,
          },
        ])
        const key = {
          customer_id: 'old',
          window_started_at: NOW - 5,
          window_requests: 2,
          created_at: NOW - 8,
          expires_at: null,
          models: null,
          requests_per_minute: null,
          tokens_per_minute: null,
          concurrent_requests: null,
          limit_nano: null,
          limit_reset: 'none',
          spent_at: 0,
          window_tokens: 0,
          min_attestation: null,
          rotated_at: null,
        }
        const keyOf = (name: string, spent: number, deletedAt: number | null) => ({
          ...key,
          key_prefix: `cmr_old_${name}`,
          key_hash: `hash of cmr_old_${name}`,
          name: `name of ${name}`,
          deleted_at: deletedAt,
          spent_nano: spent,
        })
        expect(await rowsOf(db, 'api_keys', 'key_prefix')).toEqual([
          keyOf('k1', 42, null),
          keyOf('k2', LARGEST, null),
          keyOf('k3', 0, NOW - 2),
        ])
        const used = (seq: number, name: string, cost: number) => ({
          id: `r${seq}`,
          customer_id: 'old',
          seq,
          created_at: NOW - 10 + seq,
          key_prefix: `cmr_old_${name}`,
          model: 'nova/glm-5',
          modality: 'chat',
          provider: 'nova',
          region: 'eu',
          billing_unit: 'token',
          audio_seconds: null,
          prompt_tokens: 10,
          completion_tokens: 5,
          cost_nano: cost,
          discount_pct: 15,
          usd_eur: '0.86',
          receipt_id: `receipt-${seq}`,
          failover: 1,
          capped: 0,
        })
        expect(await rowsOf(db, 'usage', 'seq')).toEqual([
          used(1, 'k1', 30),
          used(2, 'k2', LARGEST),
          used(3, 'k1', 12),
        ])

        // Requests that were in progress are settled, the ledger still balances, and what a key spent before counts for its new limit.
        const presented = {
          customerId: 'old',
          keyPrefix: 'cmr_old_k1',
          keyHash: 'hash of cmr_old_k1',
        }
        await commitSettlement(db, settlementOf(presented, 'at-work', { nano: 8n }))
        expect(await readLedgerTotals(db, 'old')).toEqual({
          balance: 92n,
          reserved: 0n,
          rows: 4,
          open: 0,
        })
        await updateKey(db, 'old', 'cmr_old_k1', { limit_eur: 60n }, NOW)
        const refused = await rejectionOf(admit(db, askOf(presented, 'too-much', { nano: 11n })))
        expect(refused.code).toBe('insufficient_quota')
        await admit(db, askOf(presented, 'enough', { nano: 10n }))
        const [view] = (await listKeysOf(db, 'old', NOW)) ?? []
        expect(view).toMatchObject({ spent_eur: '0.00000005', reserved_eur: '0.00000001' })

        // Its receipts are found and emptied, whichever key their table has.
        await beginErasure(db, 'old', 'ledger-of-old', NOW)
        await sweepAll(db, NOW)
        const receipts = await rowsOf(db, "receipts WHERE customer_id <> ''", 'receipt_id')
        expect(receipts).toMatchObject([
          { customer_id: 'ledger-of-old', receipt_id: 'row-1', jws: null, body_state: 2 },
        ])
      },
    )
  },
)
