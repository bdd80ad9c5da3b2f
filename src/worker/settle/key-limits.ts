import type { Statement } from '../storage/database.ts'
import { int64, raw, sql } from '../storage/sql.ts'

/** When the amount that a key has spent is reset, in UTC. */
export const LIMIT_RESETS = ['none', 'daily', 'weekly', 'monthly'] as const

export type LimitReset = (typeof LIMIT_RESETS)[number]

/** A span of time, Unix time in ms; `end` null: it never ends. */
interface Period {
  readonly start: number
  readonly end: number | null
}

/** The current period of each kind of limit, by year, month, day of the month and day of the week (Sunday is 0). */
const PERIODS: Readonly<
  Record<LimitReset, (year: number, month: number, day: number, weekday: number) => Period>
> = {
  none: () => ({ start: 0, end: null }),
  daily: (year, month, day) => ({
    start: Date.UTC(year, month, day),
    end: Date.UTC(year, month, day + 1),
  }),
  weekly: (year, month, day, weekday) => {
    const monday = day - ((weekday + 6) % 7)
    return { start: Date.UTC(year, month, monday), end: Date.UTC(year, month, monday + 7) }
  },
  monthly: (year, month) => ({
    start: Date.UTC(year, month, 1),
    end: Date.UTC(year, month + 1, 1),
  }),
}

/** The period that contains a moment, in UTC; weeks begin on Monday. */
export function periodOf(reset: LimitReset, now: number): Period {
  const at = new Date(now)
  return PERIODS[reset](at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCDay())
}

/** What a key has spent in the current period, as an SQL fragment over `api_keys`. */
export function spentInPeriod(now: number): Statement {
  const start = (reset: LimitReset) => raw(String(periodOf(reset, now).start))
  return sql`(CASE WHEN api_keys.spent_at < CASE api_keys.limit_reset
      WHEN 'daily' THEN ${start('daily')} WHEN 'weekly' THEN ${start('weekly')}
      WHEN 'monthly' THEN ${start('monthly')} ELSE 0 END
    THEN 0 ELSE api_keys.spent_nano END)`
}

/** The amount reserved by the open requests of a key, as an SQL fragment over `api_keys`. */
export const RESERVED_OF_KEY = raw(`(SELECT COALESCE(SUM(amount_nano), 0) FROM reservations
  WHERE reservations.customer_id = api_keys.customer_id
    AND reservations.key_prefix = api_keys.key_prefix)`)

/** Whether the limit of a key leaves room for this reservation, as an SQL fragment over `api_keys` and `customers`. */
export function withinLimit(now: number): Statement {
  return sql`(api_keys.limit_nano IS NULL OR ${spentInPeriod(now)} + ${RESERVED_OF_KEY}
    + customers.lock_reserve_nano <= api_keys.limit_nano)`
}

/**
 * By how much a bill may be dated before the latest bill of its key, ms, because it waited or was made by a host with a
 * slower clock. Such a bill counts in the period of the latest one: if it reset the date to the period before, everything
 * spent since would be forgotten. A bill that is dated earlier still means that the clock was set back.
 */
const LATE_BILL_MS = 60_000

/** The new `spent_at` of a key after a bill dated `billedAt` (ms). */
export function latestBill(spentAt: number, billedAt: number): number {
  const ahead = spentAt - billedAt
  return ahead > 0 && ahead < LATE_BILL_MS ? spentAt : billedAt
}

/** Adds the cost of a request to what its key has spent. */
export function addSpent(now: number, costNano: bigint): Statement {
  const ahead = sql`api_keys.spent_at - ${int64(now)}`
  return sql`spent_nano = ${spentInPeriod(now)} + ${int64(costNano)},
    spent_at = CASE WHEN ${ahead} > 0 AND ${ahead} < ${raw(String(LATE_BILL_MS))}
      THEN api_keys.spent_at ELSE ${int64(now)} END`
}
