import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Database, Row, Statement } from '../../../src/worker/storage/database.ts'
import type { BlockPlan } from '../../../src/worker/usage/blocks.ts'
import { usageLedgerOf } from '../../../src/worker/usage/ledger.ts'
import { readRowsBefore, readUsagePage } from '../../../src/worker/usage/page.ts'
import { readUsageQuery, type UsageQuery } from '../../../src/worker/usage/query.ts'
import { summarize } from '../../../src/worker/usage/summary.ts'
import { openSqlite, type SqliteDatabase } from '../../support/sqlite-database.ts'

interface UsageRow {
  readonly seq: number
  readonly createdAt: number
  readonly model: string
  readonly keyPrefix: string
}

const row = fc.record({
  passed: fc.nat(2),
  model: fc.constantFrom('a/x', 'b/y'),
  keyPrefix: fc.constantFrom('cmr_k1', 'cmr_k2', 'cmr_deleted'),
})

const time = fc.integer({ min: -1, max: 40 })

const anyQuery = fc.record({
  limit: fc.integer({ min: 1, max: 8 }),
  offset: fc.nat(8),
  start: fc.option(time, { nil: 0 }),
  end: fc.option(time, { nil: Number.MAX_SAFE_INTEGER }),
  model: fc.option(fc.constantFrom('a/x', 'b/y', 'c/z'), { nil: undefined }),
  keyPrefix: fc.option(fc.constantFrom('cmr_k1', 'cmr_k2', 'cmr_deleted'), { nil: undefined }),
})

/** A ledger with the rows of one customer between those of another one. */
function ledgerOf(rows: readonly UsageRow[]) {
  const db = openSqlite()
  const key = db.connection.prepare(
    `INSERT INTO api_keys (customer_id, key_prefix, key_hash, name, created_at, deleted_at)
      VALUES ('acme', ?, ?, 'k', 0, ?)`,
  )
  for (const name of ['cmr_k1', 'cmr_k2']) key.run(name, name, null)
  key.run('cmr_deleted', 'cmr_deleted', 1)
  addRows(db, rows)
  return db
}

function addRows({ connection }: SqliteDatabase, rows: readonly UsageRow[]): void {
  const insert = connection.prepare(
    `INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, billing_unit,
      prompt_tokens, completion_tokens, cost_nano, discount_pct, failover)
    VALUES (?, ?, ?, ?, ?, ?, 'chat', 'p', 'token', 1, 1, 5, 0, 0)`,
  )
  connection.exec('BEGIN')
  for (const { seq, createdAt, model, keyPrefix } of rows) {
    insert.run(`acme-${seq}`, 'acme', seq, createdAt, keyPrefix, model)
    insert.run(`other-${seq}`, 'other', seq, seq * 3, keyPrefix, model)
  }
  connection.exec('COMMIT')
}

function matches({ createdAt, model, keyPrefix }: UsageRow, query: UsageQuery): boolean {
  return (
    createdAt >= query.start &&
    createdAt <= query.end &&
    (query.model ?? model) === model &&
    (query.keyPrefix ?? keyPrefix) === keyPrefix &&
    query.keyPrefix !== 'cmr_deleted'
  )
}

const manyRows = (count: number): readonly UsageRow[] =>
  Array.from({ length: count }, (_, index) => {
    return { seq: index + 1, createdAt: index * 10, model: 'a/x', keyPrefix: 'cmr_k1' }
  })

const queryOf = (search: string) => readUsageQuery(new URLSearchParams(search))

const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id)

/** A ledger that notes what it is asked. */
function watched(db: Database) {
  const asked: Statement[] = []
  const ledger = usageLedgerOf(db, (statements) => {
    asked.push(...statements)
    return db.batch(statements)
  })
  return { ledger, asked }
}

/** How many rows statements may read one by one at the most: the sizes of the ranges that they name. */
function rowsRead(statements: readonly Statement[]): number {
  let sum = 0
  for (const { sql, params } of statements) {
    for (const { index } of sql.matchAll(/usage\.seq BETWEEN CAST/g)) {
      const before = sql.slice(0, index).split('?').length - 1
      sum += Number(params[before + 1]) - Number(params[before]) + 1
    }
  }
  return sum
}

const few = fc.integer({ min: 1, max: 3 })

const plan = fc
  .tuple(few, few, few, few)
  .map(([rows, times, blocksAtOnce, totalsAtOnce]): BlockPlan => ({
    sizes: [rows * times * 2, rows],
    rowsAtOnce: rows * times,
    blocksAtOnce,
    totalsAtOnce,
  }))

const TENS: BlockPlan = { sizes: [10], rowsAtOnce: 20, blocksAtOnce: 3, totalsAtOnce: 5 }

describe('a page of the ledger', () => {
  it('has the rows of its query and their number, whatever the times, filters and blocks', () => {
    const property = fc.asyncProperty(
      fc.array(row, { maxLength: 25 }),
      fc.array(anyQuery, { minLength: 1, maxLength: 3 }),
      fc.nat(25),
      plan,
      async (made, queries, early, divided) => {
        let now = 0
        const rows = made.map(({ passed, ...rest }, index) => {
          now += passed
          return { seq: index + 1, createdAt: now, ...rest }
        })
        const db = ledgerOf(rows.slice(0, early))
        try {
          await expectAnswers(db, rows.slice(0, early), queries, divided)
          addRows(db, rows.slice(early))
          await expectAnswers(db, rows, queries, divided)
        } finally {
          db.connection.close()
        }
      },
    )
    return fc.assert(property, { numRuns: 150 })
  })

  async function expectAnswers(
    db: Database,
    rows: readonly UsageRow[],
    queries: readonly UsageQuery[],
    divided: BlockPlan,
  ): Promise<void> {
    const ledger = usageLedgerOf(db)
    for (const query of queries) {
      const expected = rows.filter((one) => matches(one, query)).toReversed()
      const ids = expected.map(({ seq }) => `acme-${seq}`)
      const { limit, offset } = query
      const page = await readUsagePage(ledger, 'acme', query, divided)
      expect([idsOf(page.rows), page.total]).toEqual([
        ids.slice(offset, offset + limit),
        ids.length,
      ])
      const exported: Row[] = []
      for (let seq: number | undefined; ;) {
        const some = await readRowsBefore(ledger, 'acme', query, { seq, count: limit }, divided)
        exported.push(...some)
        if (some.length < limit) break
        seq = Number(some.at(-1)?.['seq'])
      }
      expect(idsOf(exported)).toEqual(ids.slice(offset))
      const { groups, total } = await summarize(ledger, 'acme', query, ['model'], divided)
      expect([total.requests, total.promptTokens, total.costNano]).toEqual([
        ids.length,
        BigInt(ids.length),
        BigInt(5 * ids.length),
      ])
      const counts = Object.groupBy(expected, ({ model }) => model)
      expect(groups.map(({ members, sums }) => [members['model'], sums.requests])).toEqual(
        ['a/x', 'b/y'].flatMap((model) => (counts[model] ? [[model, counts[model].length]] : [])),
      )
    }
  }

  it.each([
    '',
    '?model=a/x',
    '?key_prefix=cmr_k1',
    '?start=1970-01-01T00:00:01Z&end=1970-01-02T00:00:00Z',
  ])('reads rows of no other customer, and none one by one (%s)', async (search) => {
    const db = ledgerOf(manyRows(500))
    const plans: string[] = []
    const ledger = usageLedgerOf(db, async (statements) => {
      for (const statement of statements) {
        const explained = { ...statement, sql: `EXPLAIN QUERY PLAN ${statement.sql}` }
        const [steps = []] = await db.batch([explained])
        plans.push(...steps.map(({ detail }) => String(detail)))
      }
      return db.batch(statements)
    })
    const query = queryOf(search)
    await readUsagePage(ledger, 'acme', query, TENS)
    await readRowsBefore(ledger, 'acme', query, { seq: undefined, count: 100 }, TENS)
    await summarize(ledger, 'acme', query, ['model'], TENS)
    const ofUsage = plans.filter((step) => /\b(SEARCH|SCAN) usage(_blocks)?\b/.test(step))
    expect(ofUsage.filter((step) => step.includes('usage_blocks'))).not.toEqual([])
    for (const step of ofUsage) {
      expect(step).toMatch(
        /SEARCH usage USING (COVERING )?INDEX usage_order \(customer_id=\?( AND seq.*)?\)|SEARCH usage_blocks USING INDEX \S+ \(customer_id=\? AND row_count=\? AND first_seq(>\? AND first_seq<\?|=\?)\)/,
      )
    }
    db.connection.close()
  })

  it('reads no further than a part of an export needs', async () => {
    const db = ledgerOf(manyRows(500))
    const { ledger, asked } = watched(db)
    const query = queryOf('?model=a/x&offset=20')
    await readRowsBefore(ledger, 'acme', query, { seq: undefined, count: 100 })
    await readRowsBefore(ledger, 'acme', query, { seq: 300, count: 100 })
    expect(asked.filter(({ sql }) => sql.includes('COUNT'))).toEqual([])
    db.connection.close()
  })

  it('finds rows without a filter by their numbers, and passes over none', async () => {
    const db = ledgerOf(manyRows(500))
    const { ledger, asked } = watched(db)
    const query = queryOf('?offset=498')
    const { rows } = await readUsagePage(ledger, 'acme', query)
    const exported = await readRowsBefore(ledger, 'acme', query, { seq: undefined, count: 100 })
    for (const found of [rows, exported]) expect(idsOf(found)).toEqual(['acme-2', 'acme-1'])
    expect(asked.filter(({ sql }) => sql.includes('OFFSET'))).toEqual([])
    db.connection.close()
  })
})

describe('a ledger of many rows', () => {
  const COUNT = 110_500
  const RARE = 'rare/one'
  const rareIds = [100_000, 75_000, 50_000, 25_000].map((seq) => `acme-${seq}`)

  /** A row each ten milliseconds, of which each 25,000th is of a rare model. */
  function longLedger() {
    const db = ledgerOf([])
    onTestFinished(() => db.connection.close())
    db.connection
      .exec(`INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider,
        billing_unit, prompt_tokens, completion_tokens, cost_nano, discount_pct, failover)
      WITH RECURSIVE numbers(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM numbers WHERE seq < ${COUNT})
      SELECT 'acme-' || seq, 'acme', seq, seq * 10, 'cmr_k1',
        CASE WHEN seq % 25000 = 0 THEN '${RARE}' ELSE 'a/x' END, 'chat', 'p', 'token', 1, 1, 5, 0, 0
      FROM numbers`)
    return db
  }

  it('is added up once, and later queries read a part of it in few steps', async () => {
    const db = longLedger()
    const first = watched(db)
    const byKey = await summarize(first.ledger, 'acme', queryOf(''), ['key'])
    expect(byKey.total.requests).toBe(COUNT)
    expect(rowsRead(first.asked)).toBe(COUNT)

    const again = watched(db)
    expect(await summarize(again.ledger, 'acme', queryOf(''), ['key'])).toEqual(byKey)
    // The range, the keys, and what is left of the ledger, its ten newest blocks and the one before them.
    expect([again.asked.length, rowsRead(again.asked)]).toEqual([5, 500])

    const page = watched(db)
    const rare = await readUsagePage(page.ledger, 'acme', queryOf(`?model=${RARE}`))
    expect([idsOf(rare.rows), rare.total]).toEqual([rareIds, 4])
    expect(rowsRead(page.asked)).toBe(500 + 4 * 1_000)

    const deep = watched(db)
    const query = queryOf('?model=a/x&offset=70000&limit=10&end=1970-01-01T00:16:40Z')
    const { rows, total } = await readUsagePage(deep.ledger, 'acme', query)
    // Of the first 100,000 rows, of which four are rare.
    expect([rows[0]?.['id'], rows.length, total]).toEqual(['acme-29997', 10, 99_996])
    expect(rowsRead(deep.asked)).toBe(1_000)

    const none = watched(db)
    const absent = await readUsagePage(none.ledger, 'acme', queryOf('?model=none'))
    expect([absent.rows, absent.total]).toEqual([[], 0])
    expect(rowsRead(none.asked)).toBe(500)
  })

  it('is exported by a filter without the blocks that have none of its rows', async () => {
    const db = longLedger()
    await summarize(usageLedgerOf(db), 'acme', queryOf(''), ['key'])
    const { ledger, asked } = watched(db)
    const rare = queryOf(`?model=${RARE}`)
    const rows = await readRowsBefore(ledger, 'acme', rare, { seq: undefined, count: 10 })
    expect(idsOf(rows)).toEqual(rareIds)
    // The newest 10,000, the rows at the edge of the next block, and four blocks.
    expect(rowsRead(asked)).toBe(10_000 + 500 + 4 * 1_000)
  })

  it('is exported from its newest rows on before any older block is added up', async () => {
    const db = ledgerOf(manyRows(500))
    onTestFinished(() => db.connection.close())
    const { ledger, asked } = watched(db)
    const divided = { ...TENS, sizes: [40, 10] }
    const part = { seq: undefined, count: 30 }
    const rows = await readRowsBefore(ledger, 'acme', queryOf('?model=a/x'), part, divided)
    expect([rows.length, rows.at(-1)?.['id']]).toEqual([30, 'acme-471'])
    // The newest twenty, one block of forty before them, and the ten of it that are wanted.
    expect(rowsRead(asked)).toBe(20 + 40 + 10)
  })

  it('keeps only blocks of which it has every row, and answers where it can keep none', async () => {
    const db = ledgerOf(manyRows(45))
    const kept = () => db.connection.prepare('SELECT first_seq FROM usage_blocks').all()
    const refusing: Database = {
      batch: async (statements) => {
        if (statements.some(({ sql }) => sql.startsWith('INSERT')))
          throw new Error('the disk is full')
        return db.batch(statements)
      },
    }
    const sum = async (of: Database) =>
      (await summarize(usageLedgerOf(of), 'acme', queryOf(''), ['key'], TENS)).total.requests
    expect(await sum(refusing)).toBe(45)
    expect(kept()).toEqual([])
    // As an erasure that is under way.
    db.connection.exec(
      `UPDATE usage SET customer_id = 'gone' WHERE customer_id = 'acme' AND seq <= 15`,
    )
    // As a ledger that was repaired by hand, from which a row is missing for now.
    db.connection.exec(`DELETE FROM usage WHERE id = 'acme-25'`)
    expect(await sum(db)).toBe(29)
    expect(kept()).toEqual([{ first_seq: 31 }])
    db.connection.close()
  })
})
