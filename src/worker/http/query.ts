import { isName, isSelector } from '../../protocol/selector.ts'
import { ApiError } from './errors.ts'

/**
 * Query parameters, read strictly: a malformed, empty or repeated parameter is an error, because silently dropping a
 * filter would return more than requested. Unknown parameters are ignored.
 */

/**
 * The type of a parameter: its name in errors, its parser (undefined for malformed text), and its JSON Schema for the
 * interface description.
 */
export interface ParameterForm<T> {
  readonly expected: string
  readonly read: (text: string) => T | undefined
  readonly schema: Readonly<Record<string, unknown>>
}

/**
 * The value of a query parameter, or undefined where it is absent.
 * @throws ApiError `invalid_parameter` with the parameter's name
 */
export function readParameter<T>(
  query: URLSearchParams,
  name: string,
  form: ParameterForm<T>,
): T | undefined {
  const [text, ...more] = query.getAll(name)
  if (text === undefined) return undefined
  const value = more.length > 0 ? undefined : form.read(text)
  if (value !== undefined) return value
  const message = `The query parameter \`${name}\` must be ${form.expected}, given once.`
  throw new ApiError('invalid_parameter', message, { param: name })
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

export const BOOLEAN: ParameterForm<boolean> = {
  expected: 'true, false, 1 or 0',
  read: (text) => BOOLEANS.get(text),
  schema: { type: 'boolean' },
}

/** A model key, provider or region. */
export const NAME: ParameterForm<string> = {
  expected: 'a name of letters, digits, ".", "_" and "-"',
  read: (text) => (isName(text) ? text : undefined),
  schema: { type: 'string', pattern: '^[A-Za-z0-9._-]+$' },
}

/** A route selector of any form, whether or not it resolves. */
export const SELECTOR: ParameterForm<string> = {
  expected: 'one to three names with "/" between them',
  read: (text) => (isSelector(text) ? text : undefined),
  schema: { type: 'string' },
}

/** One of a closed list of words. */
export function oneOf<T extends string>(words: readonly T[]): ParameterForm<T> {
  return {
    expected: `one of ${words.join(', ')}`,
    read: (text) => words.find((word) => word === text),
    schema: { type: 'string', enum: words },
  }
}

/** A whole number in plain digits. */
export function integerFrom(least: number): ParameterForm<number> {
  return {
    expected: `a whole number of at least ${least}`,
    read: (text) => {
      if (!/^[0-9]{1,15}$/.test(text)) return undefined
      const value = Number(text)
      return value < least ? undefined : value
    },
    schema: { type: 'integer', minimum: least },
  }
}

const DEFAULT_PAGE_SIZE = 100
export const MAX_PAGE_SIZE = 1000

/** How many entries a page has. Larger numbers, of any length, count as 1000. */
export const PAGE_SIZE: ParameterForm<number> = {
  expected: 'a whole number of at least 1',
  read: (text) => {
    const value = /^[0-9]+$/.test(text) ? Number(text) : 0
    return value < 1 ? undefined : Math.min(value, MAX_PAGE_SIZE)
  },
  schema: { type: 'integer', minimum: 1 },
}

/**
 * The `limit` of a query, 100 where it is absent.
 * @throws ApiError `invalid_parameter`
 */
export function readLimit(query: URLSearchParams): number {
  return readParameter(query, 'limit', PAGE_SIZE) ?? DEFAULT_PAGE_SIZE
}

const DATE = String.raw`[0-9]{4}-[0-9]{2}-[0-9]{2}`
const TIME = String.raw`(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?`
// The plus sign of an offset that was not escaped arrives as a space.
const OFFSET = String.raw`[Zz]|[ +-](?:[01][0-9]|2[0-3]):[0-5][0-9]`
const RFC_3339 = new RegExp(`^(${DATE})[Tt ](${TIME})(${OFFSET})$`)

/** An RFC 3339 timestamp, in milliseconds since the epoch. */
export const TIMESTAMP: ParameterForm<number> = {
  expected: 'an RFC 3339 timestamp such as 2026-01-31T12:00:00Z',
  read: (text) => {
    const [, date, time, zone] = RFC_3339.exec(text) ?? []
    if (date === undefined || time === undefined || zone === undefined) return undefined
    const midnight = Date.parse(`${date}T00:00:00Z`)
    // Date.parse accepts 30 February as 2 March.
    if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date))
      return undefined
    const milliseconds = Date.parse(`${date}T${time}${zone.toUpperCase().replace(' ', '+')}`)
    return Number.isNaN(milliseconds) ? undefined : milliseconds
  },
  schema: { type: 'string', format: 'date-time' },
}
