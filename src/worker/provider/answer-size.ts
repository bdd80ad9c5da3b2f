import type { Bytes } from '../../protocol/bytes.ts'
import { AttemptFailure } from './failure.ts'

/**
 * Parsing time depends on the number of values more than on bytes: 16 MiB of empty objects take `JSON.parse` five
 * seconds, as one string 34 ms, and parsing blocks all requests of the thread. These bounds keep it below about a
 * quarter of a second, and are far above real answers: 8,192 tokens with 20 alternatives each have 180,000 objects.
 */
const MAX_CONTAINERS = 250_000
const MAX_VALUES = 2_000_000

/** A body up to this size is parsed unchecked: it cannot hold enough values to matter. */
const SMALL_BYTES = 256 * 1024

/** Bytes counted between two pauses: below two milliseconds of work. */
const SLICE_BYTES = 512 * 1024

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b

/**
 * Checks that a provider's answer has no more values than can be parsed without delaying other requests. Whether it
 * is valid JSON is left to the parser.
 * @param pause lets other requests run
 * @throws AttemptFailure `unclassified` when it has more
 */
export async function checkAnswerSize(bytes: Bytes, pause: () => Promise<void>): Promise<void> {
  if (bytes.length <= SMALL_BYTES) return
  const counts = { containers: 0, values: 0, inString: false, escaped: false }
  for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
    countValues(bytes.subarray(start, start + SLICE_BYTES), counts)
    if (counts.containers > MAX_CONTAINERS || counts.values > MAX_VALUES) {
      throw new AttemptFailure({ kind: 'unclassified' })
    }
    // oxlint-disable-next-line no-await-in-loop -- the pauses are the purpose
    await pause()
  }
}

interface Counts {
  containers: number
  values: number
  inString: boolean
  escaped: boolean
}

/** Counts the values of a slice; strings and escapes may continue into the next one. */
function countValues(slice: Bytes, counts: Counts): void {
  let { containers, values, inString, escaped } = counts
  for (const byte of slice) {
    if (inString) {
      if (escaped) escaped = false
      else if (byte === BACKSLASH) escaped = true
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === COMMA) values += 1
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) containers += 1
  }
  Object.assign(counts, { containers, values, inString, escaped })
}
