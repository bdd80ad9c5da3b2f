/**
 * Longer waits are taken as this long: a provider's "come back tomorrow" must not freeze a route, and a probe
 * a minute costs nothing.
 */
export const MAX_RETRY_AFTER_MS = 60_000

/**
 * How long a provider asks to wait: `retry-after-ms`, else `Retry-After` as seconds (fractions are seen) or as
 * one of the three HTTP dates (RFC 9110 sections 5.6.7 and 10.2.3). Milliseconds, at most
 * `MAX_RETRY_AFTER_MS`; undefined where the header is absent, garbage, negative or a date gone by.
 */
export function parseRetryAfter(headers: Headers, now: number): number | undefined {
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

/** Only a text that starts with a day's name is a date: `Date.parse` would make one of `-5` too. */
function untilDate(text: string | null, now: number): number | undefined {
  if (text === null || !/^\s*(Mon|Tues?|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s/.test(text)) return undefined
  const zoned = /GMT\s*$/.test(text) ? text : `${text} GMT`
  const wait = Date.parse(zoned) - now
  return wait >= 0 ? wait : undefined
}
