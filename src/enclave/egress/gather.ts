import type { AnswerBody } from './answer-body.ts'
import type { StreamMemory } from './event-memory.ts'

/** Limits for gathering an answer that does not declare its length. */
export interface GatherLimits {
  readonly bytes: number
  readonly ms: number
}

/**
 * The part of an answer that had arrived when gathering stopped. Whoever passes the answer on gives the memory back.
 */
export interface Begun {
  readonly parts: readonly Buffer[]
  readonly memory: StreamMemory
}

/** Callbacks for the result of gathering an answer. Exactly one of them is called, once. */
export interface GatherOutcome {
  whole(body: Buffer): void
  /** The answer was cut off after this part. */
  brokenOff(part: Buffer): void
  /**
   * The answer exceeds a limit, if limits were given, or no memory is left. Bytes that arrive after this are ignored
   * here.
   */
  tooMuch(begun: Begun): void
}

/**
 * Gathers the body of an answer. Its bytes count in `memory` from the first one until the result is reported.
 * @param limits needed for an answer that does not declare its length
 */
export function gather(
  answer: AnswerBody,
  outcome: GatherOutcome,
  memory: StreamMemory,
  limits?: GatherLimits,
): void {
  const parts: Buffer[] = []
  let length = 0
  let isOver = false
  const end = (tell: () => void) => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    tell()
  }
  const endGathered = (tell: () => void) =>
    end(() => {
      try {
        tell()
      } finally {
        memory.giveBack()
      }
    })
  const giveUp = () => end(() => outcome.tooMuch({ parts: parts.splice(0), memory }))
  const timer = limits && setTimeout(giveUp, limits.ms)
  answer.on('data', (part) => {
    if (isOver) return
    parts.push(part)
    length += part.length
    const isLeft = takes(memory, part.length)
    if (!isLeft || (limits !== undefined && length > limits.bytes)) giveUp()
  })
  answer.once('end', () => endGathered(() => outcome.whole(joined(parts))))
  answer.once('close', () => endGathered(() => outcome.brokenOff(joined(parts))))
}

/** Takes memory; false where too little is left. */
function takes(memory: StreamMemory, bytes: number): boolean {
  try {
    memory.take(bytes)
    return true
  } catch {
    return false
  }
}

/** Joins the parts into one buffer; a single part is not copied. */
function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts)
}
