import { describe, expect, onTestFinished, test } from 'vitest'
import { beginErasure } from '../../../src/worker/settle/erase.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import type { Database, Row } from '../../../src/worker/storage/database.ts'
import type { BlockPlan } from '../../../src/worker/usage/blocks.ts'
import { usageLedgerOf } from '../../../src/worker/usage/ledger.ts'
import { readUsagePage } from '../../../src/worker/usage/page.ts'
import { readUsageQuery } from '../../../src/worker/usage/query.ts'
import { summarize } from '../../../src/worker/usage/summary.ts'
import { addCustomer, NOW } from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

const everything = readUsageQuery(new URLSearchParams())

/** A ledger of a customer whose rows are of as many keys as are asked for. */
async function ledgerWith({ rows, keys }: { readonly rows: number; readonly keys: number }) {
  const db = openSqlite()
  onTestFinished(() => db.connection.close())
  await addCustomer(db, { id: 'acme', billing: 'postpaid' })
  db.connection
    .exec(`INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider,
      billing_unit, prompt_tokens, completion_tokens, cost_nano, discount_pct, failover)
    WITH RECURSIVE numbers(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM numbers WHERE seq < ${rows})
    SELECT 'acme-' || seq, 'acme', seq, ${NOW}, 'cmr_k' || (seq % ${keys}), 'a/x', 'chat', 'p', 'token',
      1, 1, 5, 0, 0 FROM numbers`)
  db.connection.exec(
    `UPDATE customers SET usage_count = ${rows}, last_usage_at = ${NOW} WHERE customer_id = 'acme'`,
  )
  const kept = () =>
    db.connection
      .prepare('SELECT customer_id, row_count, first_seq FROM usage_blocks ORDER BY 2, 3')
      .all()
  return { db, kept }
}

const TENS: BlockPlan = { sizes: [10], rowsAtOnce: 20, blocksAtOnce: 100, totalsAtOnce: 25 }

describe('the totals of blocks', () => {
  test('are read in parts, however many a block has', async () => {
    const { db } = await ledgerWith({ rows: 200, keys: 10 })
    await summarize(usageLedgerOf(db), 'acme', everything, ['model'], TENS)
    const parts: number[] = []
    const ledger = usageLedgerOf(db, async (statements) => {
      const answers = await db.batch(statements)
      const read = answers.flat().filter((row: Row) => typeof row['totals'] === 'string')
      if (read.length > 0) parts.push(read.length)
      return answers
    })
    const { total } = await summarize(ledger, 'acme', everything, ['model'], TENS)
    expect(total.requests).toBe(200)
    // Of ten totals each: the newest blocks with fewer than 25 before them.
    expect(parts).toEqual([3, 3, 3, 3, 3, 3, 2])
  })

  test('are exact beyond what a double holds, where false counts of a provider were billed', async () => {
    const { db, kept } = await ledgerWith({ rows: 30, keys: 1 })
    const most = Number.MAX_SAFE_INTEGER
    db.connection.exec(`UPDATE usage SET prompt_tokens = ${most}, completion_tokens = ${most}`)
    const exact = 30n * BigInt(most)
    for (const search of ['', '?start=2026-01-01T00:00:00Z', '?model=a/x']) {
      const query = readUsageQuery(new URL(`http://router/${search}`).searchParams)
      const { total } = await summarize(usageLedgerOf(db), 'acme', query, ['model'], TENS)
      expect([total.promptTokens, total.completionTokens]).toEqual([exact, exact])
      const { total: rows } = await readUsagePage(usageLedgerOf(db), 'acme', query, TENS)
      expect(rows).toBe(30)
    }
    expect(kept()).toHaveLength(3)
  })

  test('are not kept where a block has too many for one row of an engine', async () => {
    const { db, kept } = await ledgerWith({ rows: 14_000, keys: 7_000 })
    const large = { ...TENS, sizes: [14_000, 1_000], rowsAtOnce: 1_000 }
    for (const query of ['first', 'second']) {
      const { total } = await summarize(usageLedgerOf(db), 'acme', everything, ['model'], large)
      expect([query, total.requests]).toEqual([query, 14_000])
    }
    expect(kept().map(({ row_count: rows }) => rows)).toEqual(
      Array.from({ length: 14 }, () => 1_000),
    )
  })

  test('go with an erased customer, those too that a query keeps meanwhile', async () => {
    const { db, kept } = await ledgerWith({ rows: 2_500, keys: 3 })
    const sum = async (id: string) =>
      (await summarize(usageLedgerOf(db), id, everything, ['model'], TENS)).total.requests
    expect(await sum('acme')).toBe(2_500)
    expect(kept()).toHaveLength(250)
    await beginErasure(db, 'acme', 'ledger-of-nobody', NOW)
    // Twelve rounds for the receipts of two hundred rows each, one for those of the rest and a hundred blocks, one of a hundred blocks,
    // the rest of them, and the first five hundred rows.
    await sweepAll(db, NOW, { rounds: 16 })
    expect(kept()).toEqual([])
    // A query that began before.
    expect(await sum('acme')).toBe(2_000)
    expect(kept()).toHaveLength(200)
    const late: Database = {
      batch: (statements) => {
        // Kept by a transaction that is committed right before the erasure's last one.
        if (
          statements.some(({ sql }) => sql.startsWith('DELETE FROM evidence WHERE customer_id = '))
        ) {
          db.connection
            .exec(`INSERT INTO usage_blocks (customer_id, row_count, first_seq, total_count, totals)
            VALUES ('acme', 10, 2491, 0, '[]')`)
        }
        return db.batch(statements)
      },
    }
    await sweepAll(late, NOW)
    expect(kept()).toEqual([])
    expect([await sum('acme'), await sum('ledger-of-nobody')]).toEqual([0, 2_500])
    expect(new Set(kept().map((row) => row['customer_id']))).toEqual(new Set(['ledger-of-nobody']))
  })
})
