import type { Bytes } from '../../protocol/bytes.ts'
import { ApiError } from '../http/errors.ts'
import { holdsMoreThan, type ValueLimits } from '../json/value-limits.ts'
import { CONTAINER_BYTES, VALUE_BYTES } from '../json/value-memory.ts'

const MIB = 1024 * 1024

/**
 * Limits of a chat request. Its values are read in one go, which blocks the thread for up to a quarter of a second at this
 * limit. The history of an agent, 10 MiB in calls of ordinary length, takes 4 MiB once parsed (docs/faults.md, "Large
 * requests").
 */
const OF_CHAT: ValueLimits = { memoryBytes: 8 * MIB, names: 50_000 }

/**
 * Limits of an embeddings request, which may have token ids instead of texts: 10 MiB of them are two million numbers, each
 * of which takes little time.
 */
export const OF_EMBEDDINGS: ValueLimits = { memoryBytes: 32 * MIB, names: 50_000 }

/** A text below this size never exceeds the limits, bytes. */
const SMALL_BYTES = 256 * 1024

/**
 * To be called before a client's JSON is read in one go.
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
