import type { AnswerHeaders } from '../link/link-answer.ts'

/**
 * Maximum wait that a provider can ask for; longer ones are shortened. A provider that asks for a day must not take a route
 * out of service for so long, and one probe per minute costs nothing.
 */
export const MAX_RETRY_AFTER_MS = 60_000

/**
 * How long a provider asks to wait: `retry-after-ms`, else `Retry-After` in seconds (fractions are accepted) or as
 * one of the three HTTP dates (RFC 9110 sections 5.6.7 and 10.2.3). Milliseconds, at most `MAX_RETRY_AFTER_MS`;
 * undefined where the header is absent, invalid, negative or a past date.
 */
export function parseRetryAfter(headers: AnswerHeaders, now: number): number | undefined {
  const wait =
    decimal(headers.get('retry-after-ms')) ??
    scaled(decimal(headers.get('retry-after'))) ??
    untilDate(headers.get('retry-after'), now)
  return wait === undefined ? undefined : Math.min(Math.ceil(wait), MAX_RETRY_AFTER_MS)
}

function decimal(text: string | null): number | undefined {
  return text !== null && /^\d+(\.\d*)?$/.test(text.trim()) ? Number(text) : undefined
}

function scaled(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000
}

/** Only a text that starts with the name of a weekday is a date: `Date.parse` accepts `-5` too. */
function untilDate(text: string | null, now: number): number | undefined {
  if (text === null || !/^\s*(Mon|Tues?|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s/.test(text)) return undefined
  const zoned = /GMT\s*$/.test(text) ? text : `${text} GMT`
  const wait = Date.parse(zoned) - now
  return wait >= 0 ? wait : undefined
}
