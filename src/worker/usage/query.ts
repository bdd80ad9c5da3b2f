import { integerFrom, readParameter, TIMESTAMP, type ParameterForm } from '../http/query.ts'

/** What a caller asks of the ledger. */
export interface UsageQuery {
  readonly limit: number
  readonly offset: number
  /** Both bounds belong to the range, ms. */
  readonly start: number
  readonly end: number
  readonly model: string | undefined
  readonly keyPrefix: string | undefined
}

const DEFAULT_LIMIT = 100
const MAX_PAGE_SIZE = 1000

/** The time of any row lies between these. */
const EARLIEST = 0
const LATEST = Number.MAX_SAFE_INTEGER

/** Text that is compared as it is. PostgreSQL has no NUL in a text, so no row can match one. */
const EXACT: ParameterForm<string> = {
  expected: 'text that is not empty',
  read: (text) => (text === '' || text.includes('\0') ? undefined : text),
  schema: { type: 'string', minLength: 1 },
}

/** Rows carry whole milliseconds: a start within one begins with the next. */
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
  limit: integerFrom(1),
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
  const limit = readParameter(query, 'limit', forms.limit) ?? DEFAULT_LIMIT
  return {
    limit: Math.min(limit, MAX_PAGE_SIZE),
    offset: readParameter(query, 'offset', forms.offset) ?? 0,
    start: Math.max(readParameter(query, 'start', forms.start) ?? EARLIEST, EARLIEST),
    end: readParameter(query, 'end', forms.end) ?? LATEST,
    model: readParameter(query, 'model', forms.model),
    keyPrefix: readParameter(query, 'key_prefix', forms.key_prefix),
  }
}
