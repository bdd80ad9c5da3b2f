import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Row } from '../../../src/worker/storage/database.ts'
import { readOf, readRowsBefore, readUsagePage, type Read } from '../../../src/worker/usage/page.ts'
import { readUsageQuery, type UsageQuery } from '../../../src/worker/usage/query.ts'
import { summarize } from '../../../src/worker/usage/summary.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

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

const asked = fc.record({
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
  const insert = db.connection.prepare(
    `INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, billing_unit,
      prompt_tokens, completion_tokens, cost_nano, discount_pct, failover)
    VALUES (?, ?, ?, ?, ?, ?, 'chat', 'p', 'token', 1, 1, 5, 0, 0)`,
  )
  for (const { seq, createdAt, model, keyPrefix } of rows) {
    insert.run(`acme-${seq}`, 'acme', seq, createdAt, keyPrefix, model)
    insert.run(`other-${seq}`, 'other', seq, seq * 3, keyPrefix, model)
  }
  return db
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

const manyRows = () =>
  Array.from({ length: 500 }, (_, index) => {
    return { seq: index + 1, createdAt: index * 10, model: 'a/x', keyPrefix: 'cmr_k1' }
  })

const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id)

describe('a page of the ledger', () => {
  it('has the rows of its query and their number, whatever the times, filters and parts', () => {
    const property = fc.asyncProperty(
      fc.array(row, { maxLength: 25 }),
      asked,
      fc.integer({ min: 1, max: 9 }),
      async (made, query, rowsAtATime) => {
        let now = 0
        const rows = made.map(({ passed, ...rest }, index) => {
          now += passed
          return { seq: index + 1, createdAt: now, ...rest }
        })
        const db = ledgerOf(rows)
        try {
          const read = readOf(db)
          const expected = rows.filter((one) => matches(one, query)).toReversed()
          const ids = expected.map(({ seq }) => `acme-${seq}`)
          const { limit, offset } = query
          const page = await readUsagePage(read, 'acme', query, rowsAtATime)
          expect([idsOf(page.rows), page.total]).toEqual([
            ids.slice(offset, offset + limit),
            ids.length,
          ])
          const exported: Row[] = []
          for (let seq: number | undefined; ;) {
            const some = await readRowsBefore(
              read,
              'acme',
              query,
              { seq, count: limit },
              rowsAtATime,
            )
            exported.push(...some)
            if (some.length < limit) break
            seq = Number(some.at(-1)?.['seq'])
          }
          expect(idsOf(exported)).toEqual(ids.slice(offset))
          const { total } = await summarize(read, 'acme', query, ['day'])
          expect(total.requests).toBe(ids.length)
        } finally {
          db.connection.close()
        }
      },
    )
    return fc.assert(property, { numRuns: 150 })
  })

  it.each([
    '',
    '?model=a/x',
    '?key_prefix=cmr_k1',
    '?start=1970-01-01T00:00:01Z&end=1970-01-02T00:00:00Z',
  ])('reads rows of no other customer, and none one by one (%s)', async (search) => {
    const db = ledgerOf(manyRows())
    const plans: string[] = []
    const read: Read = async (statement) => {
      const plan = { ...statement, sql: `EXPLAIN QUERY PLAN ${statement.sql}` }
      const [steps = []] = await db.batch([plan])
      plans.push(...steps.map(({ detail }) => String(detail)))
      return readOf(db)(statement)
    }
    const query = readUsageQuery(new URLSearchParams(search))
    await readUsagePage(read, 'acme', query)
    await readRowsBefore(read, 'acme', query, { seq: undefined, count: 100 })
    await summarize(read, 'acme', query, ['model'])
    const ofUsage = plans.filter((step) => /\b(SEARCH|SCAN) usage\b/.test(step))
    expect(ofUsage.length).toBeGreaterThan(0)
    for (const step of ofUsage) {
      expect(step).toMatch(
        /SEARCH usage USING (COVERING )?INDEX usage_order \(customer_id=\?( AND seq.*)?\)/,
      )
    }
    db.connection.close()
  })

  it('counts no further than a part of an export needs', async () => {
    const db = ledgerOf(manyRows())
    const totals: unknown[] = []
    const read: Read = async (statement) => {
      const rows = await readOf(db)(statement)
      totals.push(...new Set(rows.flatMap(({ total = [] }) => total)))
      return rows
    }
    const query = readUsageQuery(new URLSearchParams('?model=a/x&offset=20'))
    await readRowsBefore(read, 'acme', query, { seq: undefined, count: 100 })
    await readRowsBefore(read, 'acme', query, { seq: 300, count: 100 })
    expect(totals).toEqual([120, 100])
    db.connection.close()
  })

  it('finds rows without a filter by their numbers, and passes over none', async () => {
    const db = ledgerOf(manyRows())
    const texts: string[] = []
    const read: Read = (statement) => {
      texts.push(statement.sql)
      return readOf(db)(statement)
    }
    const query = readUsageQuery(new URLSearchParams('?offset=498'))
    const { rows } = await readUsagePage(read, 'acme', query)
    const exported = await readRowsBefore(read, 'acme', query, { seq: undefined, count: 100 })
    for (const found of [rows, exported]) expect(idsOf(found)).toEqual(['acme-2', 'acme-1'])
    expect(texts.filter((text) => text.includes('OFFSET'))).toEqual([])
    db.connection.close()
  })
})
