import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { LIMIT_RESETS, periodOf } from '../../../src/worker/settle/key-limits.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import { admissionItem, roundsOf } from '../../../src/worker/storage/postgres-calls.ts'
import type { Database, Storage } from '../../../src/worker/storage/database.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import {
  addCustomer,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  settlementOf,
} from '../../support/ledger.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'

/** What PostgreSQL promises of the ledger beyond the contract of all engines. */

const SLOW = { timeout: 60_000, interval: 50 }

/** Rows of others in each table that admission and settlement look something up in. */
const GROW = [
  `INSERT INTO customers (customer_id, name, billing, created_at)
    SELECT 'grown-' || i, 'n', 'postpaid', 1 FROM generate_series(1, 3000) AS i`,
  `INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at)
    SELECT 'grown-' || i, 'p', 'h', 'n', 1 FROM generate_series(1, 3000) AS i`,
  `INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano, created_at, expires_at)
    SELECT 'grown-' || i, 'grown-' || i, 'p', 1, 1, 1 FROM generate_series(1, 3000) AS i`,
  `INSERT INTO idempotent_requests (customer_id, name, request_id, fingerprint, held_until, sweep_at)
    SELECT 'grown-' || i, 'n', 'grown-' || i, 'f', 1, 1 FROM generate_series(1, 3000) AS i`,
  `INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, billing_unit,
      prompt_tokens, completion_tokens, cost_nano, discount_pct, failover)
    SELECT 'grown-' || i, 'grown-' || i, 1, 1, 'p', 'm', 'chat', 'p', 'token', 1, 1, 1, 0, 0
    FROM generate_series(1, 3000) AS i`,
]

/** A settlement of a chat request as its function reads it. */
const settlementJson = (of: object) => ({
  ...of,
  model: 'm',
  modality: 'chat',
  provider: 'p',
  billing_unit: 'token',
  prompt_tokens: 1,
  completion_tokens: 1,
  cost_nano: 4,
  discount_pct: 0,
  failover: 0,
  capped: 0,
  answer: 'an answer',
})

describe('the ledger functions of PostgreSQL', () => {
  let server: PostgresServer
  let script = ''
  let url = ''
  let storage: Storage
  let outside: postgres.Sql
  const workers: WorkerdProcess[] = []

  async function startInstance(databaseUrl: string): Promise<Storage> {
    const text = { STORAGE: 'postgres', DATABASE_URL: databaseUrl }
    const worker = await startWorkerd({ script, text })
    workers.push(worker)
    return remoteStorage((body) =>
      fetch(`http://127.0.0.1:${worker.port}/`, { method: 'POST', body }),
    )
  }

  beforeAll(async () => {
    script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
    server = await startPostgres()
    url = await server.createDatabase()
    storage = await startInstance(url)
    await storage.directory().batch([{ sql: 'SELECT 1 AS one', params: [] }])
    outside = postgres(url, { max: 2, onnotice: () => {}, backoff: () => 0 })
  }, 60_000)
  afterAll(async () => {
    await outside.end({ timeout: 0 })
    await Promise.all(workers.map((worker) => worker.stop()))
    await server.stop()
  })

  const settle = (db: Database, key: PresentedKey, id: string, nano: bigint) =>
    commitSettlement(db, settlementOf(key, id, { nano, receipt: receiptOf(`of ${id}`) }))

  test('decide several requests of one customer in one call one after another', async () => {
    const db = storage.customer('one-call')
    const key = await addCustomer(db, { id: 'one-call', balance: 35n })
    const items = Array.from({ length: 5 }, (_, index) => {
      const { reserveNano, ...ask } = askOf(key, `one-call-${index}`, { nano: 10n })
      const amounts = { '0': reserveNano(0).toString() }
      return admissionItem({ ...ask, reserveNano: amounts, claim: null }, '{}')
    })
    const rows = await outside.unsafe(
      'SELECT answer FROM cmr_admit_v2($1::text::jsonb, 0) AS answer',
      [roundsOf(items).rounds],
    )
    const admitted = rows.map((row) => JSON.parse(String(row['answer'])).admitted)
    expect(admitted).toEqual([true, true, true, false, false])
    const totals = { balance: 35n, reserved: 30n, rows: 0, open: 3 }
    expect(await readLedgerTotals(db, 'one-call')).toEqual(totals)
  })

  test('fail alone where a value leaves its range, and lose nothing of their moment', async () => {
    const ids = ['range-a', 'range-b', 'range-c']
    const keys = await Promise.all(
      ids.map((id) => addCustomer(storage.customer(id), { id, billing: 'postpaid' })),
    )
    const [a, b, c] = keys.map((key) => ({ key, db: storage.customer(key.customerId) }))
    if (!a || !b || !c) throw new Error('three customers were added')
    const huge = 5_000_000_000_000_000_000n
    await settle(b.db, b.key, 'range-b-1', huge)
    const ends = await Promise.allSettled([
      settle(a.db, a.key, 'range-a-1', 7n),
      settle(b.db, b.key, 'range-b-2', huge),
      settle(b.db, b.key, 'range-b-3', 1n),
      settle(c.db, c.key, 'range-c-1', 9n),
    ])
    expect(ends.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    expect(ends[1]).toMatchObject({ reason: { name: 'StatementRefused' } })
    expect(await readLedgerTotals(a.db, 'range-a')).toMatchObject({ balance: -7n, rows: 1 })
    expect(await readLedgerTotals(b.db, 'range-b')).toMatchObject({ balance: -huge - 1n, rows: 2 })
    expect(await readLedgerTotals(c.db, 'range-c')).toMatchObject({ balance: -9n, rows: 1 })
  })

  test('of other customers are carried out while another host holds the row of one', async () => {
    const [held, free] = [storage.customer('held'), storage.customer('free')]
    const heldKey = await addCustomer(held, { id: 'held', billing: 'postpaid' })
    const freeKey = await addCustomer(free, { id: 'free', billing: 'postpaid' })
    const locked = Promise.withResolvers<void>()
    const unlock = Promise.withResolvers<void>()
    const holder = outside.begin(async (tx) => {
      await tx.unsafe("SELECT 1 FROM customers WHERE customer_id = 'held' FOR UPDATE")
      locked.resolve()
      await unlock.promise
    })
    await locked.promise
    let heldEnded = false
    const waiting = Promise.allSettled(
      Array.from({ length: 5 }, (_, index) => admit(held, askOf(heldKey, `held-${index}`))),
    ).then(() => (heldEnded = true))
    const others = Array.from({ length: 20 }, async (_, index) => {
      const passed = () => admit(free, askOf(freeKey, `free-${index}`)).then(() => true)
      await expect.poll(passed, SLOW).toBe(true)
    })
    await Promise.all(others)
    unlock.resolve()
    await holder
    await waiting
    expect(heldEnded).toBe(true)
    const later = () => admit(held, askOf(heldKey, 'held-later')).then(() => true)
    await expect.poll(later, SLOW).toBe(true)
  })

  test('share limits exactly with a worker of the last release, which sends batches', async () => {
    const db = storage.customer('releases')
    const other = await startInstance(url)
    const older: Database = { batch: (all) => other.customer('releases').batch(all) }
    const key = await addCustomer(db, { id: 'releases', balance: 100n })
    const ends = await Promise.allSettled(
      Array.from({ length: 24 }, (_, index) =>
        admit(index % 2 ? db : older, askOf(key, `releases-${index}`, { nano: 10n })),
      ),
    )
    const open = ends.flatMap((end, index) => (end.status === 'fulfilled' ? [index] : []))
    expect(open).toHaveLength(10)
    await Promise.all(
      open.map((index) => settle(index % 2 ? older : db, key, `releases-${index}`, 4n)),
    )
    await Promise.all(
      open.map((index) => settle(index % 2 ? db : older, key, `releases-${index}`, 4n)),
    )
    const totals = { balance: 60n, reserved: 0n, rows: 10, open: 0 }
    expect(await readLedgerTotals(db, 'releases')).toEqual(totals)
  })

  test('read the tables of their own schema, whatever the search path of a session names', async () => {
    const db = storage.customer('path')
    const key = await addCustomer(db, { id: 'path', billing: 'postpaid' })
    await admit(db, askOf(key, 'path-1', { nano: 5n }))
    await outside.begin(async (tx) => {
      await tx.unsafe('CREATE TEMP TABLE customers ON COMMIT DROP AS SELECT * FROM customers')
      await tx.unsafe('CREATE TEMP TABLE reservations ON COMMIT DROP AS SELECT * FROM reservations')
      const rounds = JSON.stringify([{ plans: null, entries: [{ request_id: 'path-1' }] }])
      const [row] = await tx.unsafe(
        'SELECT answer FROM cmr_release_v2($1::text::jsonb, 0) AS answer',
        [rounds],
      )
      expect(row).toEqual({ answer: 'true' })
      const [decoy] = await tx.unsafe(
        "SELECT COUNT(*) AS n FROM reservations WHERE request_id = 'path-1'",
      )
      expect(Number(decoy?.['n'])).toBe(1)
    })
    expect(await readLedgerTotals(db, 'path')).toMatchObject({ reserved: 0n, open: 0 })
    const functions = await outside.unsafe(
      "SELECT proname, prosecdef, proconfig FROM pg_proc WHERE proname ~ '^cmr_(admit_v2|settle_v3|release_v2)$|^cmr_lock'",
    )
    expect(functions).toHaveLength(4)
    for (const { prosecdef, proconfig } of functions) {
      expect(prosecdef).toBe(false)
      expect(proconfig).toContain('search_path=public, pg_temp')
    }
  })

  test('wait for the disk when they settle and release, not when they admit', async () => {
    const settingAfter = async (name: string, before: string) =>
      outside.begin(async (tx) => {
        await tx.unsafe(`SET LOCAL synchronous_commit = ${before}`)
        await tx.unsafe(`SELECT ${name}('[]', 0)`)
        const [row] = await tx.unsafe('SHOW synchronous_commit')
        return row?.['synchronous_commit']
      })
    expect(await settingAfter('cmr_admit_v2', 'on')).toBe('off')
    for (const name of ['cmr_settle_v3', 'cmr_release_v2']) {
      expect(await settingAfter(name, 'off')).toBe('on')
      for (const set of ['local', 'on', 'remote_apply']) {
        expect(await settingAfter(name, set)).toBe(set)
      }
    }
  })

  test('read no more rows of tables that have grown since their plans were made', async () => {
    const db = storage.customer('flat')
    const key = await addCustomer(db, { id: 'flat', billing: 'postpaid' })
    const undo = new Error('everything was seen')
    const grown = outside.begin(async (tx) => {
      const call = async (name: string, entries: readonly object[]) => {
        const rounds = JSON.stringify(entries.map((entry) => ({ plans: {}, entries: [entry] })))
        const statement = `SELECT answer FROM ${name}($1::text::jsonb, 0) AS answer`
        const rows = await tx.unsafe(statement, [rounds], { prepare: true })
        return rows.map((row) => JSON.parse(String(row['answer'])))
      }
      // Whether tables were read row by row or through an index, the rows count.
      const readRows = async () => {
        const [row] = await tx.unsafe(
          'SELECT SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)) AS n FROM pg_stat_xact_user_tables',
        )
        return Number(row?.['n'])
      }
      const serve = async (id: string) => {
        const ids = { request_id: id, customer_id: 'flat', key_prefix: key.keyPrefix, at_ms: NOW }
        const claim = {
          claim_name: id,
          claim_fingerprint: 'f',
          claim_until: NOW + 1,
          claim_bytes: 9,
        }
        const of = { ...ids, ...claim }
        const admission = { ...of, key_hash: key.keyHash, amounts: { '0': '10' }, expires_at: NOW }
        expect(await call('cmr_admit_v2', [admission])).toMatchObject([{ admitted: true }])
        expect(await call('cmr_settle_v3', [settlementJson(of)])).toMatchObject([
          { outcome: 'settled' },
        ])
        await call('cmr_admit_v2', [{ ...admission, request_id: `${id}-b`, claim_name: `${id}-b` }])
        expect(await call('cmr_release_v2', [{ request_id: `${id}-b` }])).toEqual([true])
      }
      await serve('flat-1')
      const before = await readRows()
      await serve('flat-2')
      const small = (await readRows()) - before
      for (const statement of GROW) await tx.unsafe(statement)
      const grownAt = await readRows()
      await serve('flat-3')
      expect((await readRows()) - grownAt).toBeLessThanOrEqual(small + 20)
      throw undo
    })
    await expect(grown).rejects.toBe(undo)
  })

  test('bill by writing two indexes of the ledger, however many rows it has', async () => {
    const rows = await outside`SELECT indexname FROM pg_indexes
      WHERE tablename = 'usage' AND schemaname = current_schema() ORDER BY indexname`
    expect(rows.map((row) => String(row['indexname']))).toEqual(['usage_order', 'usage_pkey'])
  })

  test('run at READ COMMITTED where the database has another default', async () => {
    const strict = await server.createDatabase()
    const name = new URL(strict).pathname.slice(1)
    await outside.unsafe(
      `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`,
    )
    const db = (await startInstance(strict)).customer('strict')
    const key = await addCustomer(db, { id: 'strict', balance: 50n })
    const ends = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) =>
        admit(db, askOf(key, `strict-${index}`, { nano: 10n })),
      ),
    )
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
  })

  test('begin periods where the keys of other engines do', async () => {
    const times = Array.from(
      { length: 500 },
      (_, index) => NOW + (index * 7_919 - 400_000) * 500_009,
    )
    const leap = Date.parse('2028-02-29T23:59:59.999Z')
    for (const time of [...times.filter((at) => at >= 0), 0, 1, leap, leap + 1]) times.push(time)
    const valid = times.filter((at) => at >= 0)
    for (const reset of LIMIT_RESETS) {
      const rows = await outside.unsafe(
        `SELECT cmr_period_start_v1('${reset}', at) AS start FROM unnest(ARRAY[${valid.join(',')}]::bigint[]) AS at`,
      )
      expect(rows.map((row) => Number(row['start']))).toEqual(
        valid.map((at) => periodOf(reset, at).start),
      )
    }
  })

  test('are carried out although the idle connections were cut', async () => {
    const db = storage.customer('cut')
    const key = await addCustomer(db, { id: 'cut', balance: 100n })
    await admit(db, askOf(key, 'cut-1', { nano: 10n }))
    const cut = () =>
      outside.unsafe(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'confidential-model-router' AND datname = current_database()`)
    await cut()
    await settle(db, key, 'cut-1', 4n)
    await cut()
    await admit(db, askOf(key, 'cut-2', { nano: 10n }))
    await cut()
    expect(await releaseReservation(db, 'cut-2')).toBe(true)
    const totals = { balance: 96n, reserved: 0n, rows: 1, open: 0 }
    expect(await readLedgerTotals(db, 'cut')).toEqual(totals)
  })

  test('bill each request once after a crash of the database, whether or not its admission outlived it', async () => {
    if (server.pid === undefined) return
    const db = storage.customer('crashed')
    const key = await addCustomer(db, { id: 'crashed', balance: 1_000n })
    const ids = Array.from({ length: 12 }, (_, index) => `crashed-${index}`)
    await Promise.all(ids.map((id) => admit(db, askOf(key, id, { nano: 10n }))))
    await server.crash()
    await server.restart()
    await expect
      .poll(
        () =>
          db.batch([{ sql: 'SELECT 1 AS one', params: [] }]).then(
            () => true,
            () => false,
          ),
        SLOW,
      )
      .toBe(true)
    await Promise.all([...ids, ...ids].map((id) => settle(db, key, id, 3n)))
    const totals = { balance: 964n, reserved: 0n, rows: 12, open: 0 }
    expect(await readLedgerTotals(db, 'crashed')).toEqual(totals)
  })
})
