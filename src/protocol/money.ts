/**
 * Exact money. Amounts are nano-EUR (10^-9 EUR) in bigint; prices, rates and factors are exact decimals. No float is
 * used, and each bill is rounded once, half to even, at the end. No other file does arithmetic on prices.
 */

/** Integer nano-EUR. */
export type Nano = bigint

/** The exact value `digits / 10^scale`. */
export interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

/** One: the rate of a price in EUR. */
export const ONE: Decimal = { digits: 1n, scale: 0 }

const NANO_SCALE = 9
const DECIMAL = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$/

/**
 * The exact value of a decimal text, such as `-0.60` or `1e-7`.
 * @throws TypeError when the text is anything else
 */
export function parseDecimal(text: string): Decimal {
  const match = DECIMAL.exec(text)
  if (!match) throw new TypeError('not a decimal number')
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = BigInt(`${sign}${whole}${fraction}`)
  const scale = fraction.length - Number(exponent)
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale }
}

/** The decimal value as a number is written: a price of 0.6 in the configuration means exactly 0.6. */
export function decimalOf(value: number): Decimal {
  return parseDecimal(String(value))
}

/** Decimal text without exponent or trailing zeros: `0.6`, `12`, `-0.000000001`. */
export function formatDecimal({ digits, scale }: Decimal): string {
  const sign = digits < 0n ? '-' : ''
  const text = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, '0')
  const whole = text.slice(0, text.length - scale)
  const fraction = text.slice(text.length - scale).replace(/0+$/, '')
  return fraction === '' ? `${sign}${whole}` : `${sign}${whole}.${fraction}`
}

/** EUR as decimal text, which is also a JSON number: 1500000001 is `1.500000001`. */
export function formatNano(nano: Nano): string {
  return formatDecimal({ digits: nano, scale: NANO_SCALE })
}

/**
 * Nano-EUR of plain decimal text such as `10.00`.
 * @throws TypeError when there is an exponent, a sign other than `-`, or more than nine decimals, because an amount of
 *   money is never rounded when it is read
 */
export function parseNano(text: string): Nano {
  if (!/^-?[0-9]{1,10}(\.[0-9]{1,9})?$/.test(text)) throw new TypeError('not an amount of money')
  const { digits, scale } = parseDecimal(text)
  return digits * 10n ** BigInt(NANO_SCALE - scale)
}

/** One line of a bill: a number of units, and the price of `Bill.per` units. */
export interface BillLine {
  readonly count: number
  readonly price: Decimal
}

export interface Bill {
  readonly lines: readonly BillLine[]
  /** How many units a price is for: 1,000,000 for prices per million tokens, 60 for seconds priced by the minute. */
  readonly per: number
  /** Whole percent, 0 to 100. */
  readonly discountPct: number
  /** EUR for one unit of the price's currency. */
  readonly rate: Decimal
}

/**
 * The total of a bill in nano-EUR: all lines, rate and discount exactly, then one rounding, half to even.
 * Counts are whole and not negative; anything else throws `RangeError`.
 */
export function totalOf({ lines, per, discountPct, rate }: Bill): Nano {
  const scale = Math.max(0, ...lines.map((line) => line.price.scale))
  let gross = 0n
  for (const { count, price } of lines) {
    gross += wholeCount(count) * price.digits * 10n ** BigInt(scale - price.scale)
  }
  const numerator = gross * rate.digits * BigInt(100 - discountPct) * 10n ** BigInt(NANO_SCALE)
  const denominator = 10n ** BigInt(scale + rate.scale) * 100n * BigInt(per)
  return divideHalfEven(numerator, denominator)
}

function wholeCount(count: number): bigint {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError('not a count')
  return BigInt(count)
}

/** The nearest integer to `numerator / denominator`; of two equally near, the even one. */
export function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  if (denominator <= 0n) throw new RangeError('the denominator must be positive')
  const negative = numerator < 0n
  const magnitude = negative ? -numerator : numerator
  const quotient = magnitude / denominator
  const twice = (magnitude % denominator) * 2n
  const up = twice > denominator || (twice === denominator && quotient % 2n === 1n)
  const rounded = up ? quotient + 1n : quotient
  return negative ? -rounded : rounded
}
