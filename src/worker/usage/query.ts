import {
  integerFrom,
  PAGE_SIZE,
  readLimit,
  readParameter,
  TIMESTAMP,
  type ParameterForm,
} from '../http/query.ts'

/** A query of the ledger. */
export interface UsageQuery {
  readonly limit: number
  readonly offset: number
  /** The range of times; both bounds are inclusive, ms since the epoch. */
  readonly start: number
  readonly end: number
  readonly model: string | undefined
  readonly keyPrefix: string | undefined
}

/** Bounds of all timestamps. */
export const EARLIEST = 0
export const LATEST = Number.MAX_SAFE_INTEGER

/**
 * Text that is compared exactly. It must not contain NUL, which PostgreSQL text cannot contain, so no row could match it.
 */
const EXACT: ParameterForm<string> = {
  expected: 'text that is not empty',
  read: (text) => (text === '' || text.includes('\0') ? undefined : text),
  schema: { type: 'string', minLength: 1 },
}

/** A start time. Rows have whole milliseconds, so a start within a millisecond is rounded up. */
const START: ParameterForm<number> = {
  expected: TIMESTAMP.expected,
  read: (text) => {
    const time = TIMESTAMP.read(text)
    const withinMillisecond = /\.[0-9]{3}[0-9]*[1-9]/.test(text)
    return time !== undefined && withinMillisecond ? time + 1 : time
  },
  schema: TIMESTAMP.schema,
}

/** The parameters of `GET /v1/usage`. */
export const USAGE_PARAMETERS = {
  limit: PAGE_SIZE,
  offset: integerFrom(0),
  start: START,
  end: TIMESTAMP,
  model: EXACT,
  key_prefix: EXACT,
}

/**
 * Reads the parameters of `GET /v1/usage` (see docs/api.md). A limit above 1000 is served as 1000.
 * @throws ApiError `invalid_parameter`
 */
export function readUsageQuery(query: URLSearchParams): UsageQuery {
  const forms = USAGE_PARAMETERS
  return {
    limit: readLimit(query),
    offset: readParameter(query, 'offset', forms.offset) ?? 0,
    start: Math.max(readParameter(query, 'start', forms.start) ?? EARLIEST, EARLIEST),
    end: readParameter(query, 'end', forms.end) ?? LATEST,
    model: readParameter(query, 'model', forms.model),
    keyPrefix: readParameter(query, 'key_prefix', forms.key_prefix),
  }
}
