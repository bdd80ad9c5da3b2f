import type { Bytes } from '../../protocol/bytes.ts'
import { parseInParts, TooManyValues } from '../json/parse-in-parts.ts'
import { JsonSyntaxError } from '../json/scan.ts'
import { runAtOnce, runWithPauses, type Steps } from '../json/steps.ts'
import type { FairLimiter } from '../limits/fair-limiter.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import {
  decodeAnswer,
  isJsonObject,
  parseJsonObject,
  type JsonObject,
} from '../stream/json-object.ts'
import { toAttemptFailure } from './attempt-failure.ts'
import { tooLong } from './answer-room.ts'

/** The customer whose answer is read, and what reading a large one needs. */
export interface ReadingTurn {
  readonly customerId: string
  /** Reads large answers one at a time, so that only one of them has its parsed values in memory. */
  readonly largeAnswers: FairLimiter
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
}

/** Answers above this size are parsed in parts of about this size, bytes; other requests run between the parts. */
const PART_BYTES = 64 * 1024

/**
 * Maximum memory of the values of one answer, bytes. Objects, lists and numbers take more memory than their text: 16 MiB of
 * empty objects would take hundreds of MiB. The most compact legitimate answer of 16 MiB, log probabilities with 20
 * alternatives of one byte each, takes about 80 MiB by this count.
 */
const MAX_MEMORY_BYTES = 96 * 1024 * 1024

/** Answers above this are read one at a time, bytes. */
const LARGE_BYTES = 256 * 1024

/**
 * Parses and reads a provider's answer that is not streamed.
 * @param read throws BrokenStream on an answer that cannot be passed on
 * @throws AttemptFailure when the answer is invalid
 * @throws ApiError `answer_too_long` when it has too many values, `rate_limit_exceeded` when too many large answers of the
 *   customer wait
 */
export async function readAnswer<Answer>(
  bytes: Bytes,
  turn: ReadingTurn,
  read: (answer: JsonObject) => Steps<Answer>,
): Promise<Answer> {
  const { customerId, largeAnswers, pause } = turn
  const rest = () => pause(0)
  const readInParts = async () => runWithPauses(read(await parseParts(bytes, rest)), rest)
  try {
    if (bytes.length <= PART_BYTES) return runAtOnce(read(parseJsonObject(decodeAnswer(bytes))))
    if (bytes.length <= LARGE_BYTES) return await readInParts()
    return await largeAnswers.during(customerId, 1, turn, readInParts)
  } catch (error) {
    throw toAttemptFailure(error)
  }
}

async function parseParts(bytes: Bytes, pause: () => Promise<void>): Promise<JsonObject> {
  const limits = { partBytes: PART_BYTES, maxMemoryBytes: MAX_MEMORY_BYTES, pause }
  try {
    const answer = await parseInParts(withoutByteOrderMark(bytes), limits)
    if (isJsonObject(answer)) return answer
  } catch (error) {
    if (error instanceof TooManyValues) throw tooLong('has too many values')
    if (!(error instanceof JsonSyntaxError)) throw error
  }
  throw new BrokenStream('malformed')
}

/** Some servers send a byte order mark, which is not JSON white space. */
function withoutByteOrderMark(bytes: Bytes): Bytes {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return marked ? bytes.subarray(3) : bytes
}
