import { status } from '../answers.ts'
import { failed, type ProviderCase } from './case.ts'

/** 429 with every form of Retry-After, and the wait that is reported to the client. */

const HOUR_MS = 3_600_000

/** A date so far ahead that the duration of a test run makes no difference. */
const ahead = (ms: number) => new Date(Date.now() + ms)

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/** The obsolete form of RFC 850: `Sunday, 06-Nov-94 08:49:37 GMT`. */
function rfc850(date: Date): string {
  const [, day, month, year, time] =
    /, (\d+) (\w+) \d\d(\d\d) (\S+) GMT/.exec(date.toUTCString()) ?? []
  return `${DAYS[date.getUTCDay()]}, ${day}-${month}-${year} ${time} GMT`
}

/** The form of C's asctime: `Sun Nov  6 08:49:37 1994`. */
function asctime(date: Date): string {
  const [, name, day, month, year, time] =
    /^(\w+), (\d+) (\w+) (\d+) (\S+)/.exec(date.toUTCString()) ?? []
  return `${name} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`
}

/** With the whole seconds reported to the client; 0 if the provider asked for no wait. */
type Form = [what: string, headers: () => Readonly<Record<string, string>>, seconds: number]

const FORMS: readonly Form[] = [
  ['nothing', () => ({}), 0],
  ['seconds', () => ({ 'retry-after': '7' }), 7],
  ['zero', () => ({ 'retry-after': '0' }), 0],
  ['a fraction', () => ({ 'retry-after': '12.4' }), 13],
  ['a day', () => ({ 'retry-after': '86400' }), 59],
  ['a number beyond all bounds', () => ({ 'retry-after': '9'.repeat(400) }), 59],
  ['a negative number', () => ({ 'retry-after': '-5' }), 0],
  ['words', () => ({ 'retry-after': 'soon' }), 0],
  ['a date', () => ({ 'retry-after': ahead(HOUR_MS).toUTCString() }), 59],
  ['a date of RFC 850', () => ({ 'retry-after': rfc850(ahead(HOUR_MS)) }), 59],
  ['a date of asctime', () => ({ 'retry-after': asctime(ahead(HOUR_MS)) }), 59],
  ['a date gone by', () => ({ 'retry-after': ahead(-HOUR_MS).toUTCString() }), 0],
  ['milliseconds', () => ({ 'retry-after-ms': '12500' }), 13],
  ['milliseconds and seconds', () => ({ 'retry-after-ms': '14500', 'retry-after': '30' }), 15],
  ['garbage and seconds', () => ({ 'retry-after-ms': 'x', 'retry-after': '6' }), 6],
]

export const RATE_LIMIT_CASES: readonly ProviderCase[] = FORMS.map(([what, headers, seconds]) => {
  const client = `429 upstream_rate_limit, retry after ${Math.max(1, seconds)}`
  const expected = failed('rate_limited', client, { state: seconds > 0 ? 'open' : 'closed' })
  return {
    name: `429, Retry-After: ${what}`,
    failures: [26],
    script: (call) => status(429, headers())(call),
    stream: expected,
    whole: expected,
  }
})
