import { describe, expect, test } from 'vitest'
import type { Pricing } from '../../../src/protocol/config.ts'
import type { Route } from '../../../src/worker/provider/route.ts'
import { priceOf, worstCase, type BilledUsage } from '../../../src/worker/settle/price.ts'
import { pricedRoute } from '../../support/routes.ts'

interface Used {
  readonly prompt?: number
  readonly completion?: number
  readonly cached?: number
  readonly written?: number
  readonly seconds?: number
}

function usage({
  prompt = 0,
  completion = 0,
  cached = 0,
  written = 0,
  seconds,
}: Used): BilledUsage {
  return {
    tokens: {
      promptTokens: prompt,
      completionTokens: completion,
      cachedTokens: cached,
      cacheWriteTokens: written,
    },
    audioSeconds: seconds,
  }
}

const EUR = { currency: 'eur', input_per_mtok: 0.6, output_per_mtok: 2.2 } as const
const AGGREGATE = { ...EUR, cache_input_per_mtok: 0.06 }
const SPLIT = { ...EUR, cache_read_input_per_mtok: 0.06, cache_write_input_per_mtok: 0.75 }
const USD = { currency: 'usd', input_per_mtok: 0.5, output_per_mtok: 1.5 } as const
const MINUTE = { currency: 'eur', billing_unit: 'audio_minute', unit_amount: 0.006 } as const
const SECOND = { currency: 'eur', billing_unit: 'audio_second', unit_amount: 0.0001 } as const
const REQUEST = { currency: 'usd', billing_unit: 'request', unit_amount: 0.01 } as const
const TINY = { currency: 'eur', input_per_mtok: 0.0005, output_per_mtok: 0 } as const

interface Case {
  readonly what: string
  readonly pricing: Pricing
  readonly used: Used
  readonly discount?: number
  readonly nano: bigint
}

// Computed by hand; a price of p EUR per million tokens is p * 1000 nano-EUR per token.
const CASES: readonly Case[] = [
  { what: 'nothing used', pricing: EUR, used: {}, nano: 0n },
  {
    what: '1000 * 600 + 500 * 2200',
    pricing: EUR,
    used: { prompt: 1000, completion: 500 },
    nano: 1_700_000n,
  },
  { what: 'one token', pricing: EUR, used: { prompt: 1 }, nano: 600n },
  {
    what: 'cached tokens without a price of their own: full price',
    pricing: EUR,
    used: { prompt: 1000, cached: 400 },
    nano: 600_000n,
  },
  {
    what: '600 * 600 + 400 * 60',
    pricing: AGGREGATE,
    used: { prompt: 1000, cached: 400 },
    nano: 384_000n,
  },
  {
    what: 'one price for cached tokens leaves written ones at the full price',
    pricing: AGGREGATE,
    used: { prompt: 1000, cached: 400, written: 100 },
    nano: 384_000n,
  },
  {
    what: '500 * 600 + 400 * 60 + 100 * 750',
    pricing: SPLIT,
    used: { prompt: 1000, cached: 400, written: 100 },
    nano: 399_000n,
  },
  {
    what: 'cached beyond the prompt counts as the prompt',
    pricing: SPLIT,
    used: { prompt: 100, cached: 400, written: 100 },
    nano: 6_000n,
  },
  {
    what: 'written beyond the rest counts as the rest: 60 * 60 + 40 * 750',
    pricing: SPLIT,
    used: { prompt: 100, cached: 60, written: 100 },
    nano: 33_600n,
  },
  {
    what: 'a cache price of zero is free',
    pricing: { ...EUR, cache_input_per_mtok: 0 },
    used: { prompt: 10, cached: 10 },
    nano: 0n,
  },
  {
    what: '1_700_000 less 15 percent',
    pricing: EUR,
    used: { prompt: 1000, completion: 500 },
    discount: 15,
    nano: 1_445_000n,
  },
  { what: 'everything taken off', pricing: EUR, used: { prompt: 1000 }, discount: 100, nano: 0n },
  {
    what: '(1000 * 500 + 200 * 1500) * 0.86',
    pricing: USD,
    used: { prompt: 1000, completion: 200 },
    nano: 688_000n,
  },
  {
    what: '3 * 500 * 0.86 * 0.93 = 1199.7, rounded once',
    pricing: USD,
    used: { prompt: 3 },
    discount: 7,
    nano: 1_200n,
  },
  { what: 'half a nano goes to the even side: 0', pricing: TINY, used: { prompt: 1 }, nano: 0n },
  { what: 'one and a half goes to the even side: 2', pricing: TINY, used: { prompt: 3 }, nano: 2n },
  { what: 'two and a half goes to the even side: 2', pricing: TINY, used: { prompt: 5 }, nano: 2n },
  { what: '90 s at 0.006 a minute', pricing: MINUTE, used: { seconds: 90 }, nano: 9_000_000n },
  {
    what: '61 started seconds at 0.006 a minute',
    pricing: MINUTE,
    used: { seconds: 60.2 },
    nano: 6_100_000n,
  },
  {
    what: 'no minimum: one started second at 0.006 a minute',
    pricing: MINUTE,
    used: { seconds: 0.01 },
    nano: 100_000n,
  },
  {
    what: '7 s at 0.01 a minute = 1166666.67',
    pricing: { ...MINUTE, unit_amount: 0.01 },
    used: { seconds: 7 },
    nano: 1_166_667n,
  },
  { what: 'no audio at all', pricing: MINUTE, used: { seconds: 0 }, nano: 0n },
  {
    what: '13 started seconds at 0.0001',
    pricing: SECOND,
    used: { seconds: 12.001 },
    nano: 1_300_000n,
  },
  { what: '12 whole seconds at 0.0001', pricing: SECOND, used: { seconds: 12 }, nano: 1_200_000n },
  {
    what: 'a request is a request: 0.01 * 0.86',
    pricing: REQUEST,
    used: { prompt: 900, seconds: 700 },
    nano: 8_600_000n,
  },
  { what: 'a request less 50 percent', pricing: REQUEST, used: {}, discount: 50, nano: 4_300_000n },
  {
    what: 'tokens beyond what a double could price',
    pricing: { ...EUR, input_per_mtok: 0.600001 },
    used: { prompt: 9_007_199_254_740 },
    nano: 5_404_328_560_043_255n,
  },
]

describe('the price of an exchange', () => {
  test.each(CASES)('$what', ({ pricing, used, discount = 0, nano }) => {
    const cost = priceOf(pricedRoute(pricing), usage(used), { discountPct: discount, usdEur: 0.86 })
    expect(cost).toEqual({
      nano,
      billingUnit: pricing.billing_unit ?? 'token',
      discountPct: discount,
      usdEur: pricing.currency === 'usd' ? '0.86' : null,
    })
  })

  test.each([
    ['an unpriced route', undefined, 'internal error: an unpriced route'],
    [
      'a route without an output price',
      { currency: 'eur', input_per_mtok: 1 },
      'internal error: a route that is priced in part',
    ],
    [
      'a unit without an amount',
      { currency: 'eur', billing_unit: 'request' },
      'internal error: a route that is priced in part',
    ],
    ['audio without a duration', MINUTE, 'internal error: audio without a duration'],
  ] as const)('%s is refused and never priced at nothing', (_, pricing, message) => {
    const terms = { discountPct: 0, usdEur: 0.86 }
    expect(() => priceOf(pricedRoute(pricing), usage({}), terms)).toThrow(new Error(message))
  })

  test('a price in USD without a rate is refused', () => {
    const terms = { discountPct: 0, usdEur: undefined }
    const message = 'internal error: a price in USD without a rate'
    expect(() => priceOf(pricedRoute(USD), usage({}), terms)).toThrow(new Error(message))
  })
})

describe('the worst case of a request', () => {
  const terms = { discountPct: 0, usdEur: 0.86 }
  const most = () => ({ promptTokens: 1000, completionTokens: 100 })

  test('is that of the dearest route that may serve', () => {
    const routes = [pricedRoute(EUR), pricedRoute(USD)]
    expect(worstCase(routes, most, terms)).toBe(820_000n)
  })

  test('takes what each route can use at most by itself', () => {
    const routes = [pricedRoute(EUR), pricedRoute(EUR, { max_output_tokens: 10 })]
    const own = ({ config }: Route) => ({
      promptTokens: 0,
      completionTokens: config.max_output_tokens === 10 ? 30 : 20,
    })
    expect(worstCase(routes, own, terms)).toBe(66_000n)
  })

  test('puts all input at the dearest input price', () => {
    expect(worstCase([pricedRoute(SPLIT)], () => ({ ...most(), completionTokens: 0 }), terms)).toBe(
      750_000n,
    )
  })

  test('is after the discount', () => {
    const discounted = { ...terms, discountPct: 50 }
    expect(worstCase([pricedRoute(EUR)], most, discounted)).toBe(410_000n)
  })

  test('measures audio by its length', () => {
    const audio = () => ({ promptTokens: 0, completionTokens: 0, audioSeconds: 90.5 })
    expect(worstCase([pricedRoute(MINUTE)], audio, terms)).toBe(9_100_000n)
  })

  test('an absurd cap gives a great amount and no error', () => {
    const absurd = () => ({ promptTokens: 1, completionTokens: Number.MAX_SAFE_INTEGER })
    expect(worstCase([pricedRoute(EUR)], absurd, terms)).toBe(19_815_838_360_430_180_800n + 0n)
  })

  test('of no route is nothing', () => {
    expect(worstCase([], most, terms)).toBe(0n)
  })
})
