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
const LARGEST_LIMIT = 1000

/** The time of any row lies between these. */
const EARLIEST = 0
const LATEST = Number.MAX_SAFE_INTEGER

/** Text that is compared as it is. PostgreSQL has no NUL in a text, so no row can match one. */
const EXACT: ParameterForm<string> = {
  expected: 'text that is not empty',
  read: (text) => (text === '' || text.includes('\0') ? undefined : text),
}

/** Rows carry whole milliseconds: a start within one begins with the next. */
const START: ParameterForm<number> = {
  expected: TIMESTAMP.expected,
  read: (text) => {
    const time = TIMESTAMP.read(text)
    const withinMillisecond = /\.[0-9]{3}[0-9]*[1-9]/.test(text)
    return time !== undefined && withinMillisecond ? time + 1 : time
  },
}

/**
 * The parameters of `GET /v1/usage` (interface: "GET /v1/usage"). A limit above 1000 is served as 1000.
 * @throws ApiError `invalid_parameter`
 */
export function readUsageQuery(query: URLSearchParams): UsageQuery {
  const limit = readParameter(query, 'limit', integerFrom(1)) ?? DEFAULT_LIMIT
  return {
    limit: Math.min(limit, LARGEST_LIMIT),
    offset: readParameter(query, 'offset', integerFrom(0)) ?? 0,
    start: Math.max(readParameter(query, 'start', START) ?? EARLIEST, EARLIEST),
    end: readParameter(query, 'end', TIMESTAMP) ?? LATEST,
    model: readParameter(query, 'model', EXACT),
    keyPrefix: readParameter(query, 'key_prefix', EXACT),
  }
}
