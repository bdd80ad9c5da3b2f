import * as z from 'zod'

/**
 * An RFC 3339 time in UTC, written with `Z` and whole or fractional seconds. No other spelling: documents
 * with these times are signed and compared as text.
 */
export const timestampSchema = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$/, 'not an RFC 3339 time in UTC')
  .refine(isRealTime, 'no such time')

/** The end of the year 9999: RFC 3339 cannot express later times, and much later ones are not valid dates. */
const LAST_SECOND = 253_402_300_799

/** A time in seconds since 1970 that RFC 3339 can express. */
export const unixSeconds = z.int().min(0).max(LAST_SECOND)

/**
 * Whether the date exists: JavaScript parses February 30th as March 1st or 2nd, but prints an existing date as it was
 * read.
 */
function isRealTime(text: string): boolean {
  const time = Date.parse(text)
  return Number.isFinite(time) && new Date(time).toISOString().slice(0, 19) === text.slice(0, 19)
}
