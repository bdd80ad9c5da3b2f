import type { BillingUnit, Pricing } from '../../protocol/config.ts'
import {
  decimalOf,
  formatDecimal,
  ONE,
  totalOf,
  type BillLine,
  type Decimal,
  type Nano,
} from '../../protocol/money.ts'
import type { Route } from '../provider/route.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { AudioBound, UsageBound } from '../stream/cap-tokens.ts'

/** The billable usage of one exchange. */
export interface BilledUsage {
  readonly tokens: TokenUsage
  /** Seconds of audio; undefined for chat. Rounded up to whole seconds here. */
  readonly audioSeconds: number | undefined
}

/** The terms that a price depends on besides the route. */
export interface Terms {
  /** The plan's discount in whole percent. */
  readonly discountPct: number
  /** EUR for one USD; needed by routes priced in USD. */
  readonly usdEur: number | undefined
}

/** The cost of one exchange. */
export interface Cost {
  readonly nano: Nano
  readonly billingUnit: BillingUnit
  readonly discountPct: number
  /** The rate used, as decimal text; null for a route priced in EUR. */
  readonly usdEur: string | null
}

/**
 * The net cost of an exchange on a route (docs/storage.md, "How a price is made").
 * @throws Error when the route has no complete price, or an audio price and no duration; callers check both before
 */
export function priceOf(route: Route, usage: BilledUsage, terms: Terms): Cost {
  return costOf(pricingOf(route), usage, terms)
}

/** Maximum cost of a request, in nano-EUR, over the routes that may serve it; 0 without routes. */
export function worstCase(
  routes: readonly Route[],
  maxUsageOn: (route: Route) => UsageBound | AudioBound,
  terms: Terms,
): Nano {
  let max = 0n
  for (const route of routes) {
    const { nano } = costOf(mostExpensive(pricingOf(route)), uncached(maxUsageOn(route)), terms)
    if (nano > max) max = nano
  }
  return max
}

function costOf(pricing: Pricing, usage: BilledUsage, terms: Terms): Cost {
  const billingUnit = pricing.billing_unit ?? 'token'
  const rate = rateOf(pricing, terms)
  const { lines, per } = METERS[billingUnit](pricing, usage)
  return {
    nano: totalOf({ lines, per, discountPct: terms.discountPct, rate }),
    billingUnit,
    discountPct: terms.discountPct,
    usdEur: pricing.currency === 'usd' ? formatDecimal(rate) : null,
  }
}

type Meter = (
  pricing: Pricing,
  usage: BilledUsage,
) => { readonly lines: readonly BillLine[]; readonly per: number }

const PER_MILLION = 1_000_000
const SECONDS_PER_MINUTE = 60

const METERS: Record<BillingUnit, Meter> = {
  token: (pricing, { tokens }) => ({ lines: tokenLines(pricing, tokens), per: PER_MILLION }),
  audio_minute: (pricing, usage) => ({
    lines: [{ count: wholeSeconds(usage), price: unitPrice(pricing) }],
    per: SECONDS_PER_MINUTE,
  }),
  audio_second: (pricing, usage) => ({
    lines: [{ count: wholeSeconds(usage), price: unitPrice(pricing) }],
    per: 1,
  }),
  request: (pricing) => ({ lines: [{ count: 1, price: unitPrice(pricing) }], per: 1 }),
}

/**
 * Cached counts are parts of the prompt: a reported count beyond the prompt is ignored. Without a cache price the
 * full input price applies.
 */
function tokenLines(pricing: Pricing, tokens: TokenUsage): readonly BillLine[] {
  const input = required(pricing.input_per_mtok)
  const read = Math.min(tokens.cachedTokens, tokens.promptTokens)
  const written = Math.min(tokens.cacheWriteTokens, tokens.promptTokens - read)
  const readPrice = pricing.cache_read_input_per_mtok ?? pricing.cache_input_per_mtok
  const writePrice = pricing.cache_write_input_per_mtok
  return [
    { count: tokens.promptTokens - read - written, price: input },
    { count: read, price: readPrice === undefined ? input : decimalOf(readPrice) },
    { count: written, price: writePrice === undefined ? input : decimalOf(writePrice) },
    { count: tokens.completionTokens, price: required(pricing.output_per_mtok) },
  ]
}

function wholeSeconds({ audioSeconds }: BilledUsage): number {
  if (audioSeconds === undefined) throw new Error('internal error: audio without a duration')
  return Math.ceil(audioSeconds)
}

/** The prices with all input at the highest input price, because a request's use of the cache is not known in advance. */
function mostExpensive(pricing: Pricing): Pricing {
  if (pricing.input_per_mtok === undefined) return pricing
  const { cache_input_per_mtok: cached = 0, cache_read_input_per_mtok: read = 0 } = pricing
  const written = pricing.cache_write_input_per_mtok ?? 0
  return { ...pricing, input_per_mtok: Math.max(pricing.input_per_mtok, cached, read, written) }
}

function uncached(max: UsageBound | AudioBound): BilledUsage {
  const { promptTokens, completionTokens } = max
  return {
    tokens: { promptTokens, completionTokens, cachedTokens: 0, cacheWriteTokens: 0 },
    audioSeconds: 'audioSeconds' in max ? max.audioSeconds : undefined,
  }
}

/** Embeddings have no output tokens, so embedding routes need no output price. */
function pricingOf({ config: { pricing, type } }: Route): Pricing {
  if (pricing === undefined) throw new Error('internal error: an unpriced route')
  return type === 'embedding' ? { output_per_mtok: 0, ...pricing } : pricing
}

function unitPrice(pricing: Pricing): Decimal {
  return required(pricing.unit_amount)
}

function required(price: number | undefined): Decimal {
  if (price === undefined) throw new Error('internal error: a route that is priced in part')
  return decimalOf(price)
}

function rateOf(pricing: Pricing, { usdEur }: Terms): Decimal {
  if (pricing.currency === 'eur') return ONE
  if (usdEur === undefined) throw new Error('internal error: a price in USD without a rate')
  return decimalOf(usdEur)
}
