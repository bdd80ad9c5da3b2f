import { InvalidArgumentError } from 'commander'

/**
 * Parsers for option values, which run before the router is called. Each throws `InvalidArgumentError`, whose message
 * says what to give.
 */

/**
 * Amounts of money stay decimal text from the command line to the ledger, so that no floating-point rounding occurs.
 */
export function eur(text: string): string {
  if (/^\d+(\.\d+)?$/.test(text)) return text
  throw new InvalidArgumentError('give a decimal number of euros, such as 5.00')
}

export function whole(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number')
}

/**
 * `none` removes a limit. Other text must be refused here: `Number` would make it NaN, which JSON writes as null, and
 * null removes the limit too.
 */
export function wholeOrNone(text: string): number | 'none' {
  if (text === 'none') return text
  if (/^\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number, or none')
}

export function days(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number of days')
}

/** Null for `default`: the value of the service applies. */
export function wholeOrDefault(text: string): number | null {
  return text === 'default' ? null : whole(text)
}

/** Null for `default`: the value of the service applies. */
export function eurOrDefault(text: string): string | null {
  return text === 'default' ? null : eur(text)
}
