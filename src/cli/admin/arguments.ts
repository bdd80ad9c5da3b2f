import { InvalidArgumentError } from 'commander'

/** Values of options, checked before the router is asked. Each throws `InvalidArgumentError` with what to give. */

/** Money stays text from the command line to the ledger. */
export function eur(text: string): string {
  if (/^\d+(\.\d+)?$/.test(text)) return text
  throw new InvalidArgumentError('give a decimal number of euros, such as 5.00')
}

export function whole(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number')
}

/** `none` lifts a limit. Any other text would, too: JSON has no number for it. */
export function wholeOrNone(text: string): number | 'none' {
  if (text === 'none') return text
  if (/^\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number, or none')
}

export function days(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give a whole number of days')
}

/** Null: what the service has. */
export function wholeOrDefault(text: string): number | null {
  return text === 'default' ? null : whole(text)
}

/** Null: what the service has. */
export function eurOrDefault(text: string): string | null {
  return text === 'default' ? null : eur(text)
}
