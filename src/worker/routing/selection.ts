import type { Pricing } from '../../protocol/config.ts'
import { decimalOf, ONE, totalOf, type Nano } from '../../protocol/money.ts'
import type { Route } from '../provider/route.ts'
import { isPriced } from './capability.ts'

/** The orders of candidates other than the configured one. */

/**
 * Ranks routes by price once; returns a function that sorts any of them: cheapest first, those without a price last,
 * stable. The price is that of a million input and a million output tokens together, of a minute of audio, or of a
 * request, in EUR. Different units are not comparable: tokens come before audio, audio before requests.
 */
export function preferByPrice(
  routes: readonly Route[],
  usdEur: number | undefined,
): (group: readonly Route[]) => readonly Route[] {
  const priced = routes.map((route) => ({ route, rank: rankOf(route, usdEur) }))
  const sorted = priced.toSorted((a, b) => compareRanks(a.rank, b.rank))
  const places = new Map(sorted.map(({ route }, place) => [route, place]))
  const placeOf = (route: Route): number => places.get(route) ?? sorted.length
  return (group) => group.toSorted((a, b) => placeOf(a) - placeOf(b))
}

/** Fastest first, unknown latencies last; stable. */
export function preferByLatency<
  T extends { readonly latency: { readonly ms: number | undefined } },
>(candidates: readonly T[]): readonly T[] {
  const slowest = Number.MAX_VALUE
  return candidates.toSorted((a, b) => (a.latency.ms ?? slowest) - (b.latency.ms ?? slowest))
}

/** The values by which routes are compared. */
interface Rank {
  readonly unit: number
  readonly nano: Nano
}

const MILLION = 1_000_000
const TOKENS = 0
const UNPRICED: Rank = { unit: 3, nano: 0n }

/** The rank of each unit, and the number of units whose price is compared. */
const UNITS = {
  audio_minute: { unit: 1, count: 1 },
  audio_second: { unit: 1, count: 60 },
  request: { unit: 2, count: 1 },
} as const

function rankOf(route: Route, usdEur: number | undefined): Rank {
  const { pricing } = route.config
  if (!pricing || !isPriced(route)) return UNPRICED
  const rate = pricing.currency === 'eur' ? ONE : decimalOf(usdEur ?? 1)
  const { unit, per, lines } = sampleBill(pricing)
  return { unit, nano: totalOf({ lines, per, discountPct: 0, rate }) }
}

function sampleBill(pricing: Pricing) {
  if (pricing.billing_unit === undefined) {
    const prices = [pricing.input_per_mtok ?? 0, pricing.output_per_mtok ?? 0]
    const lines = prices.map((price) => ({ count: MILLION, price: decimalOf(price) }))
    return { unit: TOKENS, per: MILLION, lines }
  }
  const { unit, count } = UNITS[pricing.billing_unit]
  return { unit, per: 1, lines: [{ count, price: decimalOf(pricing.unit_amount ?? 0) }] }
}

function compareRanks(a: Rank, b: Rank): number {
  if (a.unit !== b.unit) return a.unit - b.unit
  return a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0
}
