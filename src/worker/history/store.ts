import type { Database } from '../storage/database.ts'
import { bigintOf, numberOf, textOf } from '../storage/row.ts'
import { inGroups } from '../storage/in-groups.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import type { Series } from './series.ts'

/** Counts over time, in rows of a minute for some hours and in rows of an hour for three months. */

const HOUR_MS = 3_600_000

/** How long rows are kept after the time that they describe, by their width. */
const KEPT: readonly { readonly widthSeconds: number; readonly keptMs: number }[] = [
  { widthSeconds: 60, keptMs: 8 * HOUR_MS },
  { widthSeconds: 3_600, keptMs: 91 * 24 * HOUR_MS },
]

/** D1 allows a hundred parameters per statement. */
const ROWS_OF_A_STATEMENT = 16
const DROPPED_AT_ONCE = 500

/** How often something happened in the minute that begins at `minute` (ms since the epoch). */
export interface Count {
  readonly minute: number
  readonly series: Series
  readonly label: string
  readonly value: number
}

/** Adds counts to the stored ones and deletes expired rows. Several workers may add concurrently. */
export async function addCounts(
  db: Database,
  counts: readonly Count[],
  now: number,
): Promise<void> {
  const writes = KEPT.flatMap(({ widthSeconds, keptMs }) => {
    const rows = rowsOf(counts, widthSeconds * 1000)
    return inGroups(rows, ROWS_OF_A_STATEMENT).map((some) => {
      const values = some.map(
        ({ startsAt, series, label, value }) =>
          sql`(${raw(String(widthSeconds))}, ${int64(startsAt)}, ${series}, ${label}, ${int64(value)},
            ${int64(startsAt + widthSeconds * 1000 + keptMs)})`,
      )
      const all = values.reduce((one, other) => sql`${one}, ${other}`)
      return sql`INSERT INTO history (width_seconds, starts_at, series, label, value, expires_at)
        VALUES ${all}
        ON CONFLICT (width_seconds, starts_at, series, label)
          DO UPDATE SET value = history.value + excluded.value`
    })
  })
  await db.batch([
    ...writes,
    sql`DELETE FROM history WHERE (width_seconds, starts_at, series, label) IN (
      SELECT width_seconds, starts_at, series, label FROM history
      WHERE expires_at <= ${int64(now)} ORDER BY expires_at LIMIT ${DROPPED_AT_ONCE})`,
  ])
}

/** The counts of one step of a time range, by series and label. */
export type Step = ReadonlyMap<Series, ReadonlyMap<string, bigint>>

export interface HistoryRange {
  /** Width of the rows that are read. */
  readonly widthSeconds: number
  /** Width of a step, a multiple of `widthSeconds`: the rows of a step are summed. */
  readonly stepSeconds: number
  /** Start of the first step, ms since the epoch. */
  readonly from: number
}

/** The steps with any counts, by their start (ms since the epoch). */
export async function readSteps(
  db: Database,
  { widthSeconds, stepSeconds, from }: HistoryRange,
): Promise<ReadonlyMap<number, Step>> {
  const step = raw(String(stepSeconds * 1000))
  const [rows = []] = await db.batch([
    sql`SELECT starts_at / ${step} AS step, series, label, CAST(SUM(value) AS TEXT) AS total
      FROM history WHERE width_seconds = ${raw(String(widthSeconds))} AND starts_at >= ${int64(from)}
      GROUP BY starts_at / ${step}, series, label`,
  ])
  const steps = new Map<number, Map<Series, Map<string, bigint>>>()
  for (const row of rows) {
    const at = numberOf(row, 'step') * stepSeconds * 1000
    const series = seriesOf(textOf(row, 'series'))
    if (series === undefined) continue
    const bySeries = steps.get(at) ?? new Map<Series, Map<string, bigint>>()
    const byLabel = bySeries.get(series) ?? new Map<string, bigint>()
    steps.set(at, bySeries.set(series, byLabel.set(textOf(row, 'label'), bigintOf(row, 'total'))))
  }
  return steps
}

const SERIES: readonly Series[] = [
  'requests',
  'errors',
  'first_delta',
  'duration',
  'prompt_tokens',
  'completion_tokens',
  'cost',
  'failovers',
]

const seriesOf = (text: string): Series | undefined => SERIES.find((one) => one === text)

/**
 * Rows in the same order for all workers: transactions that add to the same rows must lock them in one order to avoid
 * deadlocks.
 */
function rowsOf(counts: readonly Count[], widthMs: number) {
  const rows = new Map<string, { startsAt: number; series: Series; label: string; value: number }>()
  for (const { minute, series, label, value } of counts) {
    const startsAt = minute - (minute % widthMs)
    const key = `${String(startsAt).padStart(16, '0')} ${series} ${label}`
    rows.set(key, { startsAt, series, label, value: (rows.get(key)?.value ?? 0) + value })
  }
  return [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
}
