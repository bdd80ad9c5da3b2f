import { formatNano } from '../../protocol/money.ts'
import { ApiError } from '../http/errors.ts'
import { textOf } from '../storage/row.ts'
import { BlockTotals } from './block-totals.ts'
import { BLOCKS, type BlockPlan } from './blocks.ts'
import { liveKeys } from './columns-sql.ts'
import type { UsageLedger } from './ledger.ts'
import type { UsageQuery } from './query.ts'
import { rangeOf, readRange } from './row-range.ts'
import { addSums, DAY_MS, matches, nothing, type Sums, type Total } from './totals.ts'

/** The properties by which a summary can be grouped, in any combination. */
export const GROUPINGS = ['day', 'model', 'key', 'provider'] as const

export type Grouping = (typeof GROUPINGS)[number]

type MemberName = 'day' | 'model' | 'provider' | 'key_prefix' | 'key_name'

/** Maximum number of groups, more than any table or chart shows. */
const MAX_GROUPS = 10_000

/** The members of each grouping, in the order of the answer. */
const NAMES: Readonly<Record<Grouping, readonly MemberName[]>> = {
  day: ['day'],
  model: ['model'],
  provider: ['provider'],
  key: ['key_prefix', 'key_name'],
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
export function memberNames(groupings: readonly Grouping[]): readonly MemberName[] {
  return GROUPINGS.filter((one) => groupings.includes(one)).flatMap((one) => NAMES[one])
}

/**
 * Adds up a customer's ledger, up to the row that is the last one at the beginning, from the totals of its blocks.
 * @throws ApiError `invalid_parameter` where there are too many groups
 */
export async function summarize(
  ledger: UsageLedger,
  customerId: string,
  query: UsageQuery,
  groupings: readonly Grouping[],
  plan: BlockPlan = BLOCKS,
): Promise<UsageSummary> {
  const names = memberNames(groupings)
  const groups = new Map<string, SummaryGroup>()
  const sum = nothing()
  const statements = [rangeOf(customerId, query), liveKeys(customerId)]
  const [bounds = [], keys = []] = await ledger.read(statements)
  const keyNames = new Map(keys.map((row) => [textOf(row, 'key_prefix'), textOf(row, 'name')]))
  // A deleted key's rows show no prefix, so filtering by its prefix finds nothing.
  const { keyPrefix } = query
  if (keyPrefix !== undefined && !keyNames.has(keyPrefix)) return { groups: [], total: sum }
  const blocks = new BlockTotals(ledger, customerId, plan)
  for await (const { totals } of blocks.of(readRange(bounds))) {
    for (const total of totals.filter((one) => matches(one, query))) {
      const members = Object.fromEntries(
        names.map((name) => [name, MEMBERS[name](total, keyNames)]),
      )
      const key = JSON.stringify(members)
      const group = groups.get(key) ?? { members, sums: nothing() }
      groups.set(key, group)
      addSums(group.sums, total.sums)
      addSums(sum, total.sums)
    }
    if (groups.size > MAX_GROUPS) throw tooManyGroups()
  }
  return { groups: [...groups.values()].toSorted(byName(names)), total: sum }
}

/** The value of each member for a total. */
const MEMBERS: Readonly<
  Record<MemberName, (total: Total, keyNames: ReadonlyMap<string, string>) => string | null>
> = {
  day: ({ day }) => new Date(day * DAY_MS).toISOString().slice(0, 10),
  model: ({ model }) => model,
  provider: ({ provider }) => provider,
  key_prefix: ({ keyPrefix }, keyNames) => (keyNames.has(keyPrefix) ? keyPrefix : null),
  key_name: ({ keyPrefix }, keyNames) => keyNames.get(keyPrefix) ?? null,
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
