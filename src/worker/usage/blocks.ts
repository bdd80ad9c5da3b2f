import type { RowRange } from './row-range.ts'

/**
 * How a ledger is divided into blocks. A ledger only grows, so the totals of a complete block of rows never change (the
 * first block of a thousand has rows 1 to 1,000). They are stored (`usage_blocks`) when a query has added them up, and later
 * queries read them instead of the rows.
 */
export interface BlockPlan {
  /** Block sizes in rows, largest first; each is a multiple of the next. */
  readonly sizes: readonly number[]
  /**
   * Number of rows that are read at once: some tens of milliseconds, during which the engine may do nothing else. A shorter
   * range is not divided. A multiple of the smallest size.
   */
  readonly rowsAtOnce: number
  readonly blocksAtOnce: number
  /** Number of totals that are read at once, plus those of one more block: some tens of milliseconds, too. */
  readonly totalsAtOnce: number
}

/**
 * With this plan a query of ten million rows reads the totals of some 300 blocks, and up to 2,000 rows. Smaller blocks would
 * leave fewer rows to read for a rare model, but take more space.
 */
export const BLOCKS: BlockPlan = {
  sizes: [100_000, 1_000],
  rowsAtOnce: 10_000,
  blocksAtOnce: 100,
  totalsAtOnce: 16_000,
}

/** Rows that are read in the same way: as blocks of one size, or one by one. */
export interface Run extends RowRange {
  /** The block size in rows; undefined: one by one. */
  readonly size: number | undefined
  /** The sizes of the blocks into which each block can be divided. */
  readonly smaller: readonly number[]
}

/** Divides a range into as few whole blocks as possible and the remaining rows, newest first. */
export function divide({ from, to }: RowRange, sizes: readonly number[]): readonly Run[] {
  if (to < from) return []
  const [size, ...smaller] = sizes
  if (size === undefined) return [{ from, to, size, smaller }]
  const first = Math.ceil((from - 1) / size) * size + 1
  const last = Math.floor(to / size) * size
  if (last < first) return divide({ from, to }, smaller)
  return [
    ...divide({ from: last + 1, to }, smaller),
    { from: first, to: last, size, smaller },
    ...divide({ from, to: first - 1 }, smaller),
  ]
}

/** Cuts a range into parts of `rows` rows, newest first; the last part may have fewer. */
export function cut({ from, to }: RowRange, rows: number): readonly RowRange[] {
  const parts: RowRange[] = []
  for (let end = to; end >= from; end -= rows) {
    parts.push({ from: Math.max(from, end - rows + 1), to: end })
  }
  return parts
}

/** Joins adjacent blocks to ranges, newest first. */
export function joined(blocks: readonly RowRange[]): readonly RowRange[] {
  const ranges: RowRange[] = []
  for (const block of blocks) {
    const newer = ranges.at(-1)
    if (newer !== undefined && newer.from === block.to + 1) {
      ranges[ranges.length - 1] = { from: block.from, to: newer.to }
    } else ranges.push(block)
  }
  return ranges
}
