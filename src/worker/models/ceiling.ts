import type { Pricing } from '../../protocol/config.ts'
import { decimalOf, formatNano, totalOf } from '../../protocol/money.ts'

/** The published price of an aggregate entry: the maximum that any of its routes may charge. */
export type CeilingPricing = Pricing & { readonly pricing_type: 'variable' }

/** Every price field, and the field that applies instead where a route lacks it. */
const CHARGED_AS = {
  input_per_mtok: [],
  output_per_mtok: [],
  cache_input_per_mtok: ['cache_read_input_per_mtok', 'input_per_mtok'],
  cache_read_input_per_mtok: ['cache_input_per_mtok', 'input_per_mtok'],
  cache_write_input_per_mtok: ['input_per_mtok'],
  unit_amount: [],
} as const

type PriceField = keyof typeof CHARGED_AS

/**
 * The ceiling of several prices, field by field: for each field that any route has, the maximum that any route charges for
 * it. Undefined where nothing is priced or the billing units differ. Prices in more than one currency are first converted to
 * EUR.
 * @param usdEur EUR for one USD; without it, prices in two currencies have no ceiling
 */
export function ceilingOf(
  prices: readonly Pricing[],
  usdEur: number | undefined,
): CeilingPricing | undefined {
  const [first] = prices
  if (!first || prices.some((price) => price.billing_unit !== first.billing_unit)) return undefined
  const comparable = inOneCurrency(prices, usdEur)
  if (!comparable) return undefined
  const { billing_unit: unit } = first
  return {
    currency: comparable[0]?.currency ?? first.currency,
    ...(unit === undefined ? {} : { billing_unit: unit }),
    ...Object.fromEntries(FIELDS.flatMap((field) => highest(comparable, field))),
    pricing_type: 'variable',
  }
}

const FIELDS: readonly PriceField[] = [
  'input_per_mtok',
  'output_per_mtok',
  'cache_input_per_mtok',
  'cache_read_input_per_mtok',
  'cache_write_input_per_mtok',
  'unit_amount',
]

function highest(prices: readonly Pricing[], field: PriceField): [PriceField, number][] {
  if (prices.every((price) => price[field] === undefined)) return []
  const charged = prices.flatMap((price) => chargedFor(price, field) ?? [])
  return [[field, charged.reduce((most, price) => Math.max(most, price), 0)]]
}

function chargedFor(price: Pricing, field: PriceField): number | undefined {
  const named = [field, ...CHARGED_AS[field]].find((name) => price[name] !== undefined)
  return named === undefined ? undefined : price[named]
}

function inOneCurrency(
  prices: readonly Pricing[],
  usdEur: number | undefined,
): readonly Pricing[] | undefined {
  if (prices.every((price) => price.currency === prices[0]?.currency)) return prices
  if (usdEur === undefined) return undefined
  return prices.map((price) => (price.currency === 'eur' ? price : inEuro(price, usdEur)))
}

function inEuro(price: Pricing, usdEur: number): Pricing {
  const converted = FIELDS.flatMap((field): [PriceField, number][] => {
    const value = price[field]
    return value === undefined ? [] : [[field, euro(value, usdEur)]]
  })
  return { ...price, ...Object.fromEntries(converted), currency: 'eur' }
}

/** Converts exactly, then rounds once to nine decimals. */
function euro(usd: number, usdEur: number): number {
  const lines = [{ count: 1, price: decimalOf(usd) }]
  return Number(formatNano(totalOf({ lines, per: 1, discountPct: 0, rate: decimalOf(usdEur) })))
}
