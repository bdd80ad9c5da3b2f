import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type {
  Database,
  Row,
  SqlValue,
  Statement,
  Storage,
} from '../../../src/worker/storage/database.ts'
import { SQLITE_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import {
  findEnvelope,
  listSigningKeys,
  rememberSigningKey,
  type SigningKey,
} from '../../../src/worker/storage/signing-keys.ts'
import { creditCustomer, insertCustomer } from '../../../src/worker/admin/customers.ts'
import { insertKey, listKeysOf, markKeyDeleted } from '../../../src/worker/admin/keys.ts'
import { customerIds, listCustomer } from '../../../src/worker/storage/directory.ts'
import { openKeyring } from '../../support/keyring.ts'

/** A real engine, empty, reached by two instances of the worker. */
export interface EngineUnderTest {
  readonly instances: readonly [Storage, Storage]
  stop(): Promise<void>
}

const CUSTOMER = 'contract'
const BEYOND_DOUBLE = '9007199254740993'
const LARGEST = '9000000000000000000'

const CREATE_SCRATCH = `CREATE TABLE IF NOT EXISTS scratch (
  id TEXT PRIMARY KEY,
  n BIGINT CHECK (n BETWEEN -${LARGEST} AND ${LARGEST}),
  t TEXT
)`

/** Takes an engine tens of milliseconds. */
const SLOW_READ = `SELECT COUNT(*) AS n FROM (
  WITH RECURSIVE slow(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM slow WHERE n < 60000)
  SELECT n FROM slow) AS counted`

/** How many such reads wait when a write comes, and more than any engine reads at a time. */
const READS = 150
const SIDE_BY_SIDE = 50

const REFUSED = { name: 'StatementRefused' }
const UNAVAILABLE = { name: 'StorageUnavailable' }

function put(id: string, n: SqlValue, t: SqlValue = null): Statement {
  return {
    sql: 'INSERT INTO scratch (id, n, t) VALUES (?, CAST(? AS BIGINT), ?)',
    params: [id, n, t],
  }
}

function insertIfFew(id: string): Statement {
  return {
    sql: `INSERT INTO scratch (id, n) SELECT CAST(? AS TEXT), 1
      WHERE (SELECT COUNT(*) FROM scratch WHERE id LIKE 'few-%') < 3`,
    params: [id],
  }
}

function signingKey(kid: string, envelope: string): SigningKey {
  return {
    kid,
    jwkJson: `{"kid":"${kid}"}`,
    envelopeSha256: `sha256-${envelope}`,
    envelopeJson: envelope,
  }
}

/** What every engine must do alike. */
export function describeStorageContract(
  engine: string,
  start: () => Promise<EngineUnderTest>,
  migrations = SQLITE_MIGRATIONS,
) {
  describe(`storage on ${engine}`, () => {
    let running: EngineUnderTest | undefined
    let one: Database
    let two: Database
    let storages: readonly [Storage, Storage]

    beforeAll(async () => {
      running = await start()
      storages = running.instances
      one = storages[0].customer(CUSTOMER)
      two = storages[1].customer(CUSTOMER)
    }, 60_000)
    afterAll(() => running?.stop())

    const query = async (sql: string, ...params: SqlValue[]): Promise<readonly Row[]> =>
      (await one.batch([{ sql, params }]))[0] ?? []

    it('applies every migration once when two instances start at the same time', async () => {
      const create = { sql: CREATE_SCRATCH, params: [] }
      const ids = { sql: 'SELECT id FROM schema_migrations ORDER BY id', params: [] }
      const both = await Promise.all(
        [one, two, one, two].map((db) => db.batch([ids]).then(([rows]) => rows)),
      )
      const all = migrations.map(({ id }) => ({ id })).toSorted((a, b) => (a.id < b.id ? -1 : 1))
      for (const rows of both) expect(rows).toEqual(all)
      await one.batch([create])
      await two.batch([create])
    })

    it('answers no rows to no statements', async () => {
      expect(await one.batch([])).toEqual([])
    })

    it('answers the rows of each statement, in order', async () => {
      const answers = await one.batch([
        put('order-b', 2),
        { sql: 'SELECT id FROM scratch WHERE id LIKE ? ORDER BY id', params: ['order-%'] },
        put('order-a', 1),
        { sql: 'SELECT id, n FROM scratch WHERE id LIKE ? ORDER BY n DESC', params: ['order-%'] },
        { sql: 'SELECT id FROM scratch WHERE id = ?', params: ['absent'] },
      ])
      expect(answers).toEqual([
        [],
        [{ id: 'order-b' }],
        [],
        [
          { id: 'order-b', n: 2 },
          { id: 'order-a', n: 1 },
        ],
        [],
      ])
    })

    it('writes nothing of a batch of which one statement fails', async () => {
      const batch = [put('atomic', 1), { sql: 'UPDATE scratch SET n = 2', params: [] }]
      await expect(one.batch([...batch, put('atomic', 1)])).rejects.toMatchObject(REFUSED)
      expect(await query('SELECT id FROM scratch WHERE id = ? OR n = 2', 'atomic')).toEqual([
        { id: 'order-b' },
      ])
    })

    it('refuses unknown SQL as the fault of the statement', async () => {
      await expect(query('SELECT 1 AS one FORM scratch WHERE')).rejects.toMatchObject(REFUSED)
    })

    it('is unavailable where a table or a column is not there, because the router has made all that it names', async () => {
      for (const unknown of ['SELECT 1 AS one FROM nowhere', 'SELECT absent FROM scratch'])
        await expect(query(unknown)).rejects.toMatchObject(UNAVAILABLE)
    })

    it('gives the rows of RETURNING', async () => {
      const sql = 'INSERT INTO scratch (id, n) VALUES (?, CAST(? AS BIGINT)) RETURNING id, n'
      expect(await query(sql, 'returning', 7)).toEqual([{ id: 'returning', n: 7 }])
      expect(await query('DELETE FROM scratch WHERE id = ? RETURNING n', 'returning')).toEqual([
        { n: 7 },
      ])
    })

    it('keeps or replaces a row on conflict', async () => {
      const keep =
        'INSERT INTO scratch (id, n) VALUES (?, 2) ON CONFLICT (id) DO NOTHING RETURNING n'
      const replace = `INSERT INTO scratch (id, n) VALUES (?, 3)
        ON CONFLICT (id) DO UPDATE SET n = scratch.n + excluded.n RETURNING n`
      await one.batch([put('conflict', 1)])
      expect(await query(keep, 'conflict')).toEqual([])
      expect(await query(replace, 'conflict')).toEqual([{ n: 4 }])
    })

    it.each([BEYOND_DOUBLE, `-${BEYOND_DOUBLE}`, LARGEST, '0'])(
      'carries the integer %s both ways as text',
      async (digits) => {
        await one.batch([put(`int ${digits}`, digits)])
        const sql =
          'SELECT CAST(n AS TEXT) AS n, CAST(n + CAST(? AS BIGINT) AS TEXT) AS m FROM scratch'
        const [row] = await query(`${sql} WHERE id = ?`, '-1', `int ${digits}`)
        expect(row).toEqual({ n: digits, m: String(BigInt(digits) - 1n) })
      },
    )

    it('refuses a sum that leaves the range of its column', async () => {
      await one.batch([put('overflow', LARGEST)])
      const add = 'UPDATE scratch SET n = n + CAST(? AS BIGINT) WHERE id = ?'
      await expect(query(add, '1', 'overflow')).rejects.toMatchObject(REFUSED)
      await expect(query(add, LARGEST, 'overflow')).rejects.toMatchObject(REFUSED)
      expect(await query("SELECT CAST(n AS TEXT) AS n FROM scratch WHERE id = 'overflow'")).toEqual(
        [{ n: LARGEST }],
      )
    })

    it('gives small integers, counts and comparisons as numbers', async () => {
      const sql =
        'SELECT COUNT(*) AS count, 1 = 1 AS yes, CAST(SUM(n) AS BIGINT) AS sum FROM scratch'
      const [row] = await query(`${sql} WHERE id LIKE ?`, 'order-%')
      expect(row).toEqual({ count: 2, yes: 1, sum: 3 })
    })

    it('keeps NULL as null, and a fraction as it was', async () => {
      await one.batch([put('null', null, null)])
      expect(await query('SELECT n, t FROM scratch WHERE id = ?', 'null')).toEqual([
        { n: null, t: null },
      ])
      const sql = 'SELECT CAST(? AS DOUBLE PRECISION) AS x, COALESCE(CAST(? AS TEXT), ?) AS y'
      expect(await query(sql, 12.345678901234, null, 'other')).toEqual([
        { x: 12.345678901234, y: 'other' },
      ])
    })

    it('keeps any text, and takes a quoted question mark for text', async () => {
      const text = `ü 漢字 🙂 'quoted' "double" \\ \n \t ? $1 -- ;`
      await one.batch([put('text ?', 1, text)])
      const sql = `SELECT t, '?' AS "q?" FROM scratch WHERE id = 'text ?' AND t = ? -- ?`
      expect(await query(sql, text)).toEqual([{ t: text, 'q?': '?' }])
    })

    it('takes a text of a million characters', async () => {
      const text = 'x'.repeat(1_000_000)
      await one.batch([put('long', 1, text)])
      expect(await query('SELECT LENGTH(t) AS length FROM scratch WHERE id = ?', 'long')).toEqual([
        { length: 1_000_000 },
      ])
    })

    it('lets exactly as many racing batches spend a balance as it covers', async () => {
      await one.batch([
        {
          sql: `INSERT INTO customers (customer_id, name, billing, balance_nano, created_at)
            VALUES (?, 'racing', 'prepaid', 50, 0)`,
          params: [CUSTOMER],
        },
      ])
      const spend = {
        sql: `UPDATE customers SET reserved_nano = reserved_nano + 10
          WHERE customer_id = ? AND balance_nano - reserved_nano >= 10 RETURNING name`,
        params: [CUSTOMER],
      }
      const racers = Array.from({ length: 30 }, (_, index) =>
        (index % 2 ? one : two).batch([spend]),
      )
      const winners = (await Promise.all(racers)).filter(([rows]) => rows?.length === 1)
      expect(winners).toHaveLength(5)
    })

    it('runs the batches of a customer one after another, so that what one counts still holds', async () => {
      const racers = Array.from({ length: 20 }, (_, index) =>
        (index % 2 ? one : two).batch([insertIfFew(`few-${index}`)]),
      )
      await Promise.all(racers)
      const [row] = await query("SELECT COUNT(*) AS n FROM scratch WHERE id LIKE 'few-%'")
      expect(row).toEqual({ n: 3 })
    })

    it('fails one of many concurrent batches without harm to the others', async () => {
      const ids = Array.from({ length: 20 }, (_, index) => `many-${index % 10}`)
      const results = await Promise.allSettled(ids.map((id) => one.batch([put(id, 1)])))
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
      const [row] = await query("SELECT COUNT(*) AS n FROM scratch WHERE id LIKE 'many-%'")
      expect(row).toEqual({ n: 10 })
    })

    it('lets a write overtake reads that were sent before it, of its own customer and of others', async () => {
      await one.batch([{ sql: CREATE_SCRATCH, params: [] }])
      let read = 0
      const reads = Array.from({ length: READS }, async (_, index) => {
        const reader = index % 4 === 0 ? one : storages[0].customer(`reader-${index % 4}`)
        await reader.batch([{ sql: SLOW_READ, params: [] }]).catch(() => {})
        read += 1
      })
      await one.batch([put('past-reads', 1)])
      const before = read
      await Promise.all(reads)
      // In the order of arrival it would be answered after all of them but those that are read side by side.
      expect(before).toBeLessThan(READS - SIDE_BY_SIDE)
    }, 120_000)

    it('gives all instances one and the same keyring secret, however they race for it', async () => {
      const keyrings = [...storages, ...storages].map((storage) => openKeyring(storage))
      const ids = await Promise.all(keyrings.map((keyring) => keyring.newCustomerId()))
      for (const keyring of keyrings) {
        for (const id of ids) expect(await keyring.knows(id)).toBe(true)
      }
    })

    it('keeps signing keys with their envelopes and lists each key once', async () => {
      const directory = storages[0].directory()
      await rememberSigningKey(directory, signingKey('k1', 'e1'), 100)
      await rememberSigningKey(directory, signingKey('k1', 'e2'), 200)
      await rememberSigningKey(directory, signingKey('k1', 'e1'), 300)
      await rememberSigningKey(directory, signingKey('k2', 'e3'), 50)
      const listed = await listSigningKeys(storages[1].directory(), 100)
      expect(listed).toEqual([{ kid: 'k1', jwkJson: '{"kid":"k1"}' }])
      expect(await listSigningKeys(directory, 0)).toHaveLength(2)
      expect(await findEnvelope(storages[1].directory(), 'sha256-e2')).toBe('e2')
      expect(await findEnvelope(directory, 'sha256-e9')).toBeUndefined()
    })

    it('applies a credit once, however many instances repeat its reference at the same time', async () => {
      const id = 'credited'
      const customer = {
        name: 'n',
        plan: 'standard',
        billing: 'prepaid',
        balanceNano: 5n,
        receiptRetentionDays: null,
      } as const
      const [left, right] = [storages[0].customer(id), storages[1].customer(id)]
      const made = await insertCustomer(left, id, customer, 1)
      expect(made).toMatchObject({ id, balance_eur: '0.000000005', receipt_retention_days: null })
      const credit = { amountNano: 9_007_199_254_740_993n, reference: 'invoice 1' }
      const results = await Promise.all(
        [left, right, left, right].map((db) => creditCustomer(db, id, credit, 2)),
      )
      expect(results.filter((result) => result?.applied)).toHaveLength(1)
      for (const result of results) {
        expect(result?.customer.balance_eur).toBe('9007199.254740998')
      }
      expect(await creditCustomer(storages[0].customer('no'), 'no', credit, 2)).toBeUndefined()
    })

    it('keeps, lists and deletes the keys of a customer', async () => {
      const db = storages[0].customer('credited')
      const key = { key: 'cmr_whole_key', prefix: 'cmr_whole', name: 'laptop' }
      const view = {
        key_prefix: 'cmr_whole',
        name: 'laptop',
        created_at: '1970-01-01T00:00:00.003Z',
        expires_at: null,
        models: null,
        requests_per_minute: null,
        tokens_per_minute: null,
        concurrent_requests: null,
        min_attestation: null,
        limit_eur: null,
        limit_reset: 'none',
        spent_eur: '0.00',
        reserved_eur: '0.00',
        remaining_eur: null,
        resets_at: null,
        rotated_at: null,
        former_ends_at: null,
      }
      expect(await insertKey(db, 'credited', key, 3)).toEqual(view)
      expect(await listKeysOf(storages[1].customer('credited'), 'credited', 4)).toEqual([view])
      expect(await markKeyDeleted(db, 'credited', 'cmr_whole', 4)).toBe(true)
      expect(await markKeyDeleted(db, 'credited', 'cmr_whole', 5)).toBe(false)
      expect(await listKeysOf(db, 'credited', 4)).toEqual([])
      expect(await insertKey(storages[0].customer('no'), 'no', key, 3)).toBeUndefined()
      expect(await listKeysOf(storages[0].customer('no'), 'no', 4)).toBeUndefined()
    })

    it('lists customers by age, page by page', async () => {
      const directory = storages[0].directory()
      for (const [id, age] of Object.entries({ c: 1, a: 2, b: 2, d: 3 })) {
        await listCustomer(directory, id, age)
        await listCustomer(directory, id, age + 10)
      }
      const page = (after?: string) => customerIds(storages[1].directory(), { limit: 3, after })
      expect(await page()).toEqual(['c', 'a', 'b'])
      expect(await page('b')).toEqual(['d'])
      expect(await page('d')).toEqual([])
    })
  })
}
