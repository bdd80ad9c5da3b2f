import type { Statement } from '../storage/database.ts'
import { numberOf, optionalTextOf } from '../storage/row.ts'
import { int64, raw, sql, text } from '../storage/sql.ts'
import { BLOCKS, cut, divide, joined, type BlockPlan, type Run } from './blocks.ts'
import type { UsageLedger } from './ledger.ts'
import type { RowRange } from './row-range.ts'
import {
  MergedTotals,
  readTotal,
  totalsByBlock,
  totalsIn,
  totalsText,
  type Total,
} from './totals.ts'

/** A range of rows with its totals. */
export interface Counted extends RowRange {
  readonly totals: readonly Total[]
  /** The sizes of the blocks into which the range can be divided. */
  readonly smaller: readonly number[]
}

/**
 * Maximum number of totals of a stored block; a block with more is added up from smaller ones each time. An engine may allow
 * only 2 MB per row.
 */
const MAX_TOTALS = 6_000

const NONE: ReadonlyMap<number, readonly Total[]> = new Map()

/** The totals of a customer's ledger, block by block. */
export class BlockTotals {
  readonly #ledger: UsageLedger
  readonly #customerId: string
  readonly #plan: BlockPlan

  constructor(ledger: UsageLedger, customerId: string, plan: BlockPlan = BLOCKS) {
    this.#ledger = ledger
    this.#customerId = customerId
    this.#plan = plan
  }

  /** The totals of a range in parts, newest first; each part is a block or single rows. */
  async *of(range: RowRange): AsyncGenerator<Counted> {
    const isShort = range.to - range.from < this.#plan.rowsAtOnce
    yield* this.inBlocks(range, isShort ? [] : this.#plan.sizes)
  }

  /** The same, in blocks of these sizes. */
  async *inBlocks(range: RowRange, sizes: readonly number[]): AsyncGenerator<Counted> {
    for (const run of divide(range, sizes)) yield* this.#ofRun(run)
  }

  async *#ofRun({ size, smaller, ...range }: Run): AsyncGenerator<Counted> {
    if (size === undefined) {
      const rows = totalsByBlock(this.#customerId, range, Number.MAX_SAFE_INTEGER)
      const [found = []] = await this.#ledger.read([rows])
      yield { ...range, totals: found.map(readTotal), smaller }
      return
    }
    for (let { to } = range; to >= range.from;) {
      const from = Math.max(range.from, to - size * this.#plan.blocksAtOnce + 1)
      // One after another, so that other requests run in between.
      const { part, kept } = await this.#kept({ from, to }, size)
      const blocks = cut(part, size)
      const missing = blocks.filter((block) => !kept.has(block.from))
      const added = smaller.length === 0 ? await this.#addUpRows(missing, size) : NONE
      for (const block of blocks) {
        const known = kept.get(block.from) ?? added.get(block.from)
        // Computed only when needed: the totals of a hundred large blocks may be too much memory, and a search may need only
        // the first.
        const totals = known ?? (await this.#addUpBlock(block, size, smaller))
        yield { ...block, totals, smaller }
      }
      to = part.from - 1
    }
  }

  /**
   * The stored totals of blocks, by the first row of each. Where there are too many totals, `part` is the newest part of the
   * range.
   */
  async #kept(range: RowRange, size: number) {
    const own = sql`usage_blocks.customer_id = ${this.#customerId} AND usage_blocks.row_count = ${int64(size)}`
    const [found = []] = await this.#ledger.read([
      sql`SELECT usage_blocks.first_seq,
          CASE WHEN sized.newer < ${raw(String(this.#plan.totalsAtOnce))} THEN usage_blocks.totals END AS totals
        FROM (SELECT first_seq, SUM(total_count) OVER (ORDER BY first_seq DESC) - total_count AS newer
          FROM usage_blocks WHERE ${own}
            AND first_seq BETWEEN ${int64(range.from)} AND ${int64(range.to)}) AS sized
        JOIN usage_blocks ON ${own} AND usage_blocks.first_seq = sized.first_seq
        ORDER BY usage_blocks.first_seq DESC`,
    ])
    const kept = new Map<number, readonly Total[]>()
    for (const row of found) {
      const from = numberOf(row, 'first_seq')
      const totals = optionalTextOf(row, 'totals')
      if (totals === null) return { part: { from: from + size, to: range.to }, kept }
      kept.set(from, totalsIn(totals))
    }
    return { part: range, kept }
  }

  /** Adds up a block from smaller ones, and stores its totals. */
  async #addUpBlock(block: RowRange, size: number, smaller: readonly number[]) {
    const merged = new MergedTotals()
    for await (const { totals } of this.inBlocks(block, smaller)) merged.add(totals)
    const totals = merged.all()
    await this.#keep(new Map([[block.from, totals]]), size)
    return totals
  }

  /** Adds up the rows of blocks, and stores their totals. */
  async #addUpRows(missing: readonly RowRange[], size: number) {
    const added = new Map<number, readonly Total[]>()
    for (const part of joined(missing).flatMap((range) => cut(range, this.#plan.rowsAtOnce))) {
      // One after another, so that other requests run in between.
      for (const [from, totals] of await this.#addUpPart(part, size)) added.set(from, totals)
    }
    return added
  }

  async #addUpPart(range: RowRange, size: number) {
    const blocks = new Map<number, Total[]>()
    const [found = []] = await this.#ledger.read([totalsByBlock(this.#customerId, range, size)])
    for (const row of found) {
      const from = numberOf(row, 'block') * size + 1
      const totals = blocks.get(from) ?? []
      totals.push(readTotal(row))
      blocks.set(from, totals)
    }
    await this.#keep(blocks, size)
    return blocks
  }

  async #keep(blocks: ReadonlyMap<number, readonly Total[]>, size: number): Promise<void> {
    // During an erasure rows leave the ledger, so a block may be incomplete.
    const complete = [...blocks].filter(([, totals]) => rowsOf(totals) === size)
    const small = complete.filter(([, totals]) => totals.length <= MAX_TOTALS)
    await this.#ledger.keep(small.map(([from, totals]) => this.#insertion(from, size, totals)))
  }

  /**
   * Inserts the totals of a block only while its first row is still the customer's: the last step of an erasure deletes only
   * what was stored before.
   */
  #insertion(from: number, size: number, totals: readonly Total[]): Statement {
    return sql`INSERT INTO usage_blocks (customer_id, row_count, first_seq, total_count, totals)
      SELECT customer_id, ${int64(size)}, seq, ${int64(totals.length)}, ${text(totalsText(totals))}
      FROM usage WHERE customer_id = ${this.#customerId} AND seq = ${int64(from)}
      ON CONFLICT (customer_id, row_count, first_seq) DO NOTHING`
  }
}

function rowsOf(totals: readonly Total[]): number {
  return totals.reduce((sum, { sums }) => sum + sums.requests, 0)
}
