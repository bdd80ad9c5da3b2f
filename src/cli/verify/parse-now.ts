import { InvalidArgumentError } from 'commander'

/** A time on the command line: a date or an RFC 3339 time with its zone, as milliseconds since 1970. */
export function parseNow(text: string): number {
  const time = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (Number.isNaN(time)) throw new InvalidArgumentError('not an RFC 3339 time.')
  return time
}
