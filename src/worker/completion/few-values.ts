import type { Bytes } from '../../protocol/bytes.ts'
import { ApiError } from '../http/errors.ts'
import { holdsMoreThan, type ValueLimits } from '../json/value-limits.ts'
import { CONTAINER_BYTES, VALUE_BYTES } from '../json/value-memory.ts'

const MIB = 1024 * 1024

/**
 * The values of a request are read in one go, and nothing else of the thread runs meanwhile: so many take up to a quarter of a
 * second. The history of an agent, 10 MiB in calls of ordinary length, takes 4 MiB once parsed (docs/faults.md, "Large requests").
 */
const OF_CHAT: ValueLimits = { memoryBytes: 8 * MIB, names: 50_000 }

/** Token ids in place of texts: 10 MiB of them are two million numbers, of which each takes little time. */
export const OF_EMBEDDINGS: ValueLimits = { memoryBytes: 32 * MIB, names: 50_000 }

/** Text that is shorter never has too many. */
const SMALL_BYTES = 256 * 1024

/**
 * To be asked before JSON of a client is read in one go.
 * @throws ApiError `request_too_large`
 */
export function requireFewValues(json: Bytes, limits: ValueLimits = OF_CHAT): void {
  if (json.length <= SMALL_BYTES || !holdsMoreThan(limits, json)) return
  const containers = counted(limits.memoryBytes / CONTAINER_BYTES)
  const values = counted(limits.memoryBytes / VALUE_BYTES)
  throw new ApiError(
    'request_too_large',
    `The request body has more than ${containers} objects and lists, ${values} other values, or ${counted(limits.names)} different names of members.`,
  )
}

function counted(count: number): string {
  return count.toLocaleString('en')
}
