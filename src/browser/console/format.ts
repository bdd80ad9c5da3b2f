/** Formats numbers, amounts and times for people. */

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const SMALL = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** `1,204` or, from ten thousand on, `12.3K`. */
export function count(value: number): string {
  if (Math.abs(value) >= 10_000) return COMPACT.format(value)
  return Number.isInteger(value) ? WHOLE.format(value) : SMALL.format(value)
}

/** Euros: to the cent, and small amounts to three digits. */
export function euros(amount: number | string): string {
  const value = Number(amount)
  const digits = Math.abs(value) >= 1 || value === 0 ? 2 : undefined
  return digits === undefined ? `€ ${SMALL.format(value)}` : `€ ${value.toFixed(digits)}`
}

/** `240 ms`, `1.2 s`, `3 min`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${WHOLE.format(milliseconds)} ms`
  if (milliseconds < 120_000) return `${SMALL.format(milliseconds / 1_000)} s`
  return `${SMALL.format(milliseconds / 60_000)} min`
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${SMALL.format((100 * part) / whole)} %`
}

const STEPS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const

/** The distance of a time (RFC 3339) from now, such as `5 min ago` or `in 2 h`. */
export function ago(time: string | null, now: number): string {
  if (time === null) return '–'
  const seconds = Math.round((now - Date.parse(time)) / 1000)
  if (Number.isNaN(seconds)) return '–'
  if (seconds === 0) return 'now'
  const size = Math.abs(seconds)
  const [length, unit] = STEPS.find(([step]) => size >= step) ?? [1, 's']
  const text = `${Math.round(size / length)} ${unit}`
  return seconds > 0 ? `${text} ago` : `in ${text}`
}

/** The first digits of a digest or id. */
export const short = (text: string): string => (text.length > 16 ? `${text.slice(0, 12)}…` : text)
