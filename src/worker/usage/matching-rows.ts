import type { Row, Statement } from '../storage/database.ts'
import { numberOf } from '../storage/row.ts'
import { raw, sql } from '../storage/sql.ts'
import { BlockTotals } from './block-totals.ts'
import { BLOCKS, type BlockPlan } from './blocks.ts'
import { isLiveKey, LIVE_KEY, ROW_COLUMNS } from './columns-sql.ts'
import type { UsageLedger } from './ledger.ts'
import type { UsageQuery } from './query.ts'
import { inRange, rangeOf, readRange, type RowRange } from './row-range.ts'
import { countMatching } from './totals.ts'

/** Which of the matching rows are wanted, newest first. */
interface Wanted {
  readonly limit: number
  readonly offset: number
}

/** Rows that match a filter, and the number of all that do. */
export interface MatchingRows {
  readonly rows: readonly Row[]
  readonly total: number
}

const NONE: MatchingRows = { rows: [], total: 0 }

/**
 * Reads the rows of a page and counts all matching rows. In a long range, the totals of blocks show how many rows match in
 * each block, so that only blocks with rows of the page are read. Rows and count cover the ledger up to the row that was the
 * last one at the beginning, so they are consistent.
 */
export async function readMatchingPage(
  ledger: UsageLedger,
  customerId: string,
  query: UsageQuery,
  plan: BlockPlan = BLOCKS,
): Promise<MatchingRows> {
  const range = await matchingRange(ledger, customerId, query)
  if (range === undefined) return NONE
  const { limit, offset } = query
  return new Search({ ledger, customerId, query, plan }, { limit, offset }, false).through(range)
}

/** The newest matching rows before row `below`; without it the newest of all, after the offset. */
export async function readMatchingBefore(
  ledger: UsageLedger,
  customerId: string,
  query: UsageQuery,
  { below, limit, offset }: Wanted & { readonly below: number | undefined },
  plan: BlockPlan = BLOCKS,
): Promise<readonly Row[]> {
  const all = await matchingRange(ledger, customerId, query)
  if (all === undefined) return []
  const to = Math.min(all.to, (below ?? Number.POSITIVE_INFINITY) - 1)
  const newest = { from: Math.max(all.from, to - plan.rowsAtOnce + 1), to }
  const parts = { ledger, customerId, query, plan }
  if (newest.from > all.from && offset > 0) {
    return (await new Search(parts, { limit, offset }, true).through({ from: all.from, to })).rows
  }
  // Mostly the rows are among the newest, which can be read without any totals.
  const [found = []] = await ledger.read([rowsOf(customerId, query, { ...newest, limit, offset })])
  if (found.length === limit) return found
  const older = new Search(parts, { limit: limit - found.length, offset: 0 }, true)
  return [...found, ...(await older.through({ from: all.from, to: newest.from - 1 })).rows]
}

/** The rows in the query's range of times; undefined where none of them can match. */
async function matchingRange(
  ledger: UsageLedger,
  customerId: string,
  query: UsageQuery,
): Promise<RowRange | undefined> {
  const { keyPrefix } = query
  const key = keyPrefix === undefined ? [] : [isLiveKey(customerId, keyPrefix)]
  const [bounds = [], live] = await ledger.read([rangeOf(customerId, query), ...key])
  // A deleted key's rows show no prefix, so filtering by its prefix finds nothing.
  if (live?.length === 0) return undefined
  const range = readRange(bounds)
  return range.to < range.from ? undefined : range
}

/** A range of rows, some of which are wanted. */
interface Part extends RowRange, Wanted {}

interface SearchParts {
  readonly ledger: UsageLedger
  readonly customerId: string
  readonly query: UsageQuery
  readonly plan: BlockPlan
}

/** A search through blocks, newest first. */
class Search {
  readonly #parts: SearchParts
  readonly #wanted: Wanted
  readonly #untilFull: boolean
  readonly #totals: BlockTotals
  readonly #found: Part[] = []
  #total = 0

  /** @param untilFull whether to stop at the last wanted row instead of counting all rows */
  constructor(parts: SearchParts, wanted: Wanted, untilFull: boolean) {
    this.#parts = parts
    this.#wanted = wanted
    this.#untilFull = untilFull
    this.#totals = new BlockTotals(parts.ledger, parts.customerId, parts.plan)
  }

  async through(range: RowRange): Promise<MatchingRows> {
    const { ledger, customerId, query, plan } = this.#parts
    if (range.to - range.from >= plan.rowsAtOnce) {
      await this.#visit(range, plan.sizes)
      return { rows: await this.#readFound(), total: this.#total }
    }
    const [counted = [], rows = []] = await ledger.read([
      countOf(customerId, query, range),
      rowsOf(customerId, query, { ...range, ...this.#wanted }),
    ])
    return { rows, total: counted[0] === undefined ? 0 : numberOf(counted[0], 'total') }
  }

  async #visit(range: RowRange, sizes: readonly number[]): Promise<void> {
    const { limit, offset } = this.#wanted
    for await (const { from, to, totals, smaller } of this.#totals.inBlocks(range, sizes)) {
      const matching = countMatching(totals, this.#parts.query)
      const skipped = Math.max(offset - this.#total, 0)
      const taken = Math.min(offset + limit - this.#total, matching) - skipped
      if (taken > 0 && smaller.length > 0) await this.#visit({ from, to }, smaller)
      else {
        if (taken > 0) this.#found.push({ from, to, limit: taken, offset: skipped })
        this.#total += matching
      }
      // Checked before the next block, which may have to be added up.
      if (this.#untilFull && this.#total >= offset + limit) return
    }
  }

  /** Reads the wanted rows of several blocks at once. */
  async #readFound(): Promise<readonly Row[]> {
    const { ledger, customerId, query, plan } = this.#parts
    const rows: Row[] = []
    const atOnce = Math.floor(plan.rowsAtOnce / (plan.sizes.at(-1) ?? plan.rowsAtOnce))
    for (let next = 0; next < this.#found.length; next += atOnce) {
      const parts = this.#found.slice(next, next + atOnce)
      // One after another, so that other requests run in between.
      const read = await ledger.read(parts.map((part) => rowsOf(customerId, query, part)))
      rows.push(...read.flat())
    }
    return rows
  }
}

function countOf(customerId: string, query: UsageQuery, range: RowRange): Statement {
  return sql`SELECT COUNT(*) AS total FROM usage WHERE ${inRange(customerId, range)} ${filters(query)}`
}

function rowsOf(customerId: string, query: UsageQuery, { limit, offset, ...range }: Part) {
  return sql`SELECT ${ROW_COLUMNS} FROM (SELECT seq FROM usage WHERE ${inRange(customerId, range)}
      ${filters(query)} ORDER BY seq DESC LIMIT ${limit} OFFSET ${offset}) AS page
    JOIN usage ON usage.customer_id = ${customerId} AND usage.seq = page.seq
    ${LIVE_KEY}
    ORDER BY usage.seq DESC`
}

function filters({ model, keyPrefix }: UsageQuery): Statement {
  const byModel = model === undefined ? raw('') : sql`AND usage.model = ${model}`
  return keyPrefix === undefined ? byModel : sql`${byModel} AND usage.key_prefix = ${keyPrefix}`
}
