import type { Bytes } from '../../protocol/bytes.ts'
import { ApiError } from '../http/errors.ts'
import { holdsMoreThan } from '../json/value-limits.ts'

/**
 * The values of a request are parsed in one go, and nothing else of the thread runs meanwhile: at most 800,000 objects and
 * lists or four million numbers, and 50,000 different names, which take a few tenths of a second.
 */
const LIMITS = { memoryBytes: 64 * 1024 * 1024, names: 50_000 }

/** Text that is shorter never has too many. */
const SMALL_BYTES = 256 * 1024

/**
 * To be asked before JSON of a client is parsed in one go.
 * @throws ApiError `request_too_large`
 */
export function requireFewValues(json: Bytes): void {
  if (json.length <= SMALL_BYTES || !holdsMoreThan(LIMITS, json)) return
  throw new ApiError(
    'request_too_large',
    'The request body has more than 800,000 objects and lists, four million other values, or 50,000 different names of members.',
  )
}
