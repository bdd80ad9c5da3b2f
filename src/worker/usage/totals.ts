import type { Row, Statement } from '../storage/database.ts'
import { bigintOf, numberOf, optionalNumberOf, textOf } from '../storage/row.ts'
import { raw, sql } from '../storage/sql.ts'
import type { UsageQuery } from './query.ts'
import { inRange, type RowRange } from './row-range.ts'

/** Sums of usage and cost. */
export interface Sums {
  requests: number
  /** A bigint, because the count of a single row may already be near 2^53. */
  promptTokens: bigint
  completionTokens: bigint
  audioSeconds: number
  costNano: bigint
}

/** The sums of rows that agree in every property by which a query can filter or group. */
export interface Total {
  /** Days since the epoch, UTC. */
  readonly day: number
  readonly model: string
  readonly keyPrefix: string
  readonly provider: string
  readonly sums: Sums
}

export const DAY_MS = 86_400_000

export function nothing(): Sums {
  return { requests: 0, promptTokens: 0n, completionTokens: 0n, audioSeconds: 0, costNano: 0n }
}

export function addSums(to: Sums, sums: Sums): void {
  to.requests += sums.requests
  to.promptTokens += sums.promptTokens
  to.completionTokens += sums.completionTokens
  to.audioSeconds += sums.audioSeconds
  to.costNano += sums.costNano
}

/** Merges the totals of several parts. */
export class MergedTotals {
  readonly #merged = new Map<string, Total>()

  add(totals: readonly Total[]): void {
    for (const total of totals) {
      const { day, model, keyPrefix, provider, sums } = total
      const name = JSON.stringify([day, model, keyPrefix, provider])
      const known = this.#merged.get(name)
      if (known === undefined) this.#merged.set(name, { ...total, sums: { ...sums } })
      else addSums(known.sums, sums)
    }
  }

  all(): readonly Total[] {
    return [...this.#merged.values()]
  }
}

/** The number of rows that match a query's filters. */
export function countMatching(totals: readonly Total[], query: UsageQuery): number {
  return totals.reduce((sum, total) => sum + (matches(total, query) ? total.sums.requests : 0), 0)
}

export function matches(
  { model, keyPrefix }: Total,
  query: Pick<UsageQuery, 'model' | 'keyPrefix'>,
): boolean {
  return (query.model ?? model) === model && (query.keyPrefix ?? keyPrefix) === keyPrefix
}

/**
 * Reads the totals of a range of rows, for `readTotal`. `block` is the number, from 0, of the block of `rows` rows that they
 * belong to.
 */
export function totalsByBlock(customerId: string, range: RowRange, rows: number): Statement {
  return sql`SELECT (usage.seq - 1) / ${raw(String(rows))} AS block,
      usage.created_at / ${raw(String(DAY_MS))} AS day, usage.model AS model,
      usage.key_prefix AS key_prefix, usage.provider AS provider, COUNT(*) AS requests,
      CAST(SUM(usage.prompt_tokens) AS TEXT) AS prompt_tokens,
      CAST(SUM(usage.completion_tokens) AS TEXT) AS completion_tokens,
      SUM(usage.audio_seconds) AS audio_seconds, CAST(SUM(usage.cost_nano) AS TEXT) AS cost_nano
    FROM usage WHERE ${inRange(customerId, range)}
    GROUP BY 1, 2, 3, 4, 5`
}

export function readTotal(row: Row): Total {
  return {
    day: numberOf(row, 'day'),
    model: textOf(row, 'model'),
    keyPrefix: textOf(row, 'key_prefix'),
    provider: textOf(row, 'provider'),
    sums: {
      requests: numberOf(row, 'requests'),
      promptTokens: bigintOf(row, 'prompt_tokens'),
      completionTokens: bigintOf(row, 'completion_tokens'),
      audioSeconds: optionalNumberOf(row, 'audio_seconds') ?? 0,
      costNano: bigintOf(row, 'cost_nano'),
    },
  }
}

/** The stored form of a total. */
type StoredTotal = readonly [
  day: number,
  model: string,
  keyPrefix: string,
  provider: string,
  requests: number,
  promptTokens: number | string,
  completionTokens: number | string,
  audioSeconds: number,
  costNano: string,
]

/** A count in its stored form: a number, as in earlier releases, where a double represents it exactly, else text. */
function storedCount(count: bigint): number | string {
  return count <= Number.MAX_SAFE_INTEGER ? Number(count) : count.toString()
}

export function totalsText(totals: readonly Total[]): string {
  const stored = totals.map(({ day, model, keyPrefix, provider, sums }): StoredTotal => {
    const { requests, promptTokens, completionTokens, audioSeconds, costNano } = sums
    const tokens = [storedCount(promptTokens), storedCount(completionTokens)] as const
    const counts = [requests, ...tokens, audioSeconds] as const
    return [day, model, keyPrefix, provider, ...counts, costNano.toString()]
  })
  return JSON.stringify(stored)
}

/** @param text written by `totalsText` */
export function totalsIn(text: string): readonly Total[] {
  // Not validated: only this module writes it, and a query may read tens of thousands of totals.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const stored = JSON.parse(text) as readonly StoredTotal[]
  return stored.map(
    ([day, model, keyPrefix, provider, requests, prompt, completion, audio, cost]) => {
      const tokens = { promptTokens: BigInt(prompt), completionTokens: BigInt(completion) }
      const sums = { requests, ...tokens, audioSeconds: audio, costNano: BigInt(cost) }
      return { day, model, keyPrefix, provider, sums }
    },
  )
}
