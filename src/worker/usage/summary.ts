import { formatNano } from '../../protocol/money.ts'
import { ApiError } from '../http/errors.ts'
import type { Row, Statement } from '../storage/database.ts'
import { bigintOf, numberOf, optionalNumberOf, optionalTextOf } from '../storage/row.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import { filters, LIVE_KEY, rangeOf, type Read } from './page.ts'
import type { UsageQuery } from './query.ts'

/** The properties by which a summary can be grouped, in any combination. */
export const GROUPINGS = ['day', 'model', 'key', 'provider'] as const

export type Grouping = (typeof GROUPINGS)[number]

/** Ledger rows summed up by one read: some tens of milliseconds, in which the engine may do nothing else. */
const ROWS_AT_A_TIME = 10_000

/** Maximum number of groups: more than any table or chart shows. */
const MAX_GROUPS = 10_000

const DAY_MS = 86_400_000

/** The columns of each grouping, in the order of the answer. */
const COLUMNS: Readonly<Record<Grouping, readonly string[]>> = {
  day: [`usage.created_at / ${DAY_MS} AS day`],
  model: ['usage.model AS model'],
  provider: ['usage.provider AS provider'],
  key: ['api_keys.key_prefix AS key_prefix', 'api_keys.name AS key_name'],
}

/** The names of those columns. */
const NAMES: Readonly<Record<Grouping, readonly string[]>> = {
  day: ['day'],
  model: ['model'],
  provider: ['provider'],
  key: ['key_prefix', 'key_name'],
}

/** Totals of usage and cost. */
export interface Sums {
  requests: number
  promptTokens: number
  completionTokens: number
  audioSeconds: number
  costNano: bigint
}

export interface SummaryGroup {
  /** Values by member name; days as `2026-11-22`, UTC. */
  readonly members: Readonly<Record<string, string | null>>
  readonly sums: Sums
}

export interface UsageSummary {
  /** Newest day first, then by name. */
  readonly groups: readonly SummaryGroup[]
  readonly total: Sums
}

/** The names of the members that the groups of a summary have. */
export function memberNames(groupings: readonly Grouping[]): readonly string[] {
  return GROUPINGS.filter((one) => groupings.includes(one)).flatMap((one) => NAMES[one])
}

/**
 * Adds up a customer's ledger. Rows are only ever added, so reading them in parts up to the row that was the last at
 * the beginning gives consistent sums, and no read is long.
 * @param read runs one statement
 * @throws ApiError `invalid_parameter` where there are too many groups
 */
export async function summarize(
  read: Read,
  customerId: string,
  query: UsageQuery,
  groupings: readonly Grouping[],
): Promise<UsageSummary> {
  const names = memberNames(groupings)
  const groups = new Map<string, SummaryGroup>()
  const total = nothing()
  const [bounds] = await read(rangeOf(customerId, query))
  if (bounds === undefined) return { groups: [], total }
  const [first, last] = [numberOf(bounds, 'lo'), numberOf(bounds, 'hi')]
  for (let from = first; from <= last; from += ROWS_AT_A_TIME) {
    const to = Math.min(last, from + ROWS_AT_A_TIME - 1)
    // oxlint-disable-next-line no-await-in-loop -- one after another, so that other requests run in between
    for (const row of await read(sumOf(customerId, query, groupings, { from, to }))) {
      addRow(row, names, groups, total)
    }
    if (groups.size > MAX_GROUPS) throw tooManyGroups()
  }
  return { groups: [...groups.values()].toSorted(byName(names)), total }
}

function sumOf(
  customerId: string,
  query: UsageQuery,
  groupings: readonly Grouping[],
  { from, to }: { readonly from: number; readonly to: number },
): Statement {
  const columns = GROUPINGS.filter((one) => groupings.includes(one)).flatMap((one) => COLUMNS[one])
  const places = columns.map((_column, index) => index + 1).join(', ')
  return sql`SELECT ${raw(columns.map((column) => `${column}, `).join(''))}COUNT(*) AS requests,
      CAST(SUM(usage.prompt_tokens) AS TEXT) AS prompt_tokens,
      CAST(SUM(usage.completion_tokens) AS TEXT) AS completion_tokens,
      SUM(usage.audio_seconds) AS audio_seconds, CAST(SUM(usage.cost_nano) AS TEXT) AS cost_nano
    FROM (SELECT * FROM usage WHERE customer_id = ${customerId}
      AND seq BETWEEN ${int64(from)} AND ${int64(to)} ${filters(customerId, query)}) AS usage
    ${LIVE_KEY}
    ${raw(places === '' ? '' : `GROUP BY ${places}`)}`
}

function addRow(
  row: Row,
  names: readonly string[],
  groups: Map<string, SummaryGroup>,
  total: Sums,
): void {
  if (numberOf(row, 'requests') === 0) return
  const members = Object.fromEntries(names.map((name) => [name, memberOf(row, name)]))
  const key = JSON.stringify(members)
  const group = groups.get(key) ?? { members, sums: nothing() }
  groups.set(key, group)
  for (const sums of [group.sums, total]) {
    sums.requests += numberOf(row, 'requests')
    sums.promptTokens += numberOf(row, 'prompt_tokens')
    sums.completionTokens += numberOf(row, 'completion_tokens')
    sums.audioSeconds += optionalNumberOf(row, 'audio_seconds') ?? 0
    sums.costNano += bigintOf(row, 'cost_nano')
  }
}

function memberOf(row: Row, name: string): string | null {
  if (name !== 'day') return optionalTextOf(row, name)
  return new Date(numberOf(row, 'day') * DAY_MS).toISOString().slice(0, 10)
}

function nothing(): Sums {
  return { requests: 0, promptTokens: 0, completionTokens: 0, audioSeconds: 0, costNano: 0n }
}

/** Newest day first, other members from A to Z, groups without a name last. */
function byName(names: readonly string[]) {
  return (left: SummaryGroup, right: SummaryGroup): number => {
    for (const name of names) {
      const [one, other] = [left.members[name] ?? '\uffff', right.members[name] ?? '\uffff']
      if (one !== other) return one < other === (name !== 'day') ? -1 : 1
    }
    return 0
  }
}

function tooManyGroups(): ApiError {
  const message = `More than ${MAX_GROUPS} groups: ask for a shorter time, or group by less.`
  return new ApiError('invalid_parameter', message, { param: 'group_by' })
}

/** The sums as members of an answer; money is written with all its digits. */
export function sumMembers(sums: Sums): readonly (readonly [name: string, text: string])[] {
  return [
    ['requests', String(sums.requests)],
    ['prompt_tokens', String(sums.promptTokens)],
    ['completion_tokens', String(sums.completionTokens)],
    ['audio_seconds', String(sums.audioSeconds)],
    ['cost_eur', formatNano(sums.costNano)],
  ]
}
