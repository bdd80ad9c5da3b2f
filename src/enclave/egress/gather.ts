import type { AnswerBody } from './answer-body.ts'
import type { StreamMemory } from './event-memory.ts'

/** What may be gathered of an answer that does not say how long it is. */
export interface GatherLimits {
  readonly bytes: number
  readonly ms: number
}

/** What came of an answer that is not gathered any more. The one that passes it on gives the memory back then. */
export interface Begun {
  readonly parts: readonly Buffer[]
  readonly memory: StreamMemory
}

/** What is called once, with what became of an answer. */
export interface GatherOutcome {
  whole(body: Buffer): void
  /** Nothing comes after this part, and the answer is not whole. */
  brokenOff(part: Buffer): void
  /** It is larger or slower than the limits, if there are any, or no memory is left: what comes is not taken here any more. */
  tooMuch(begun: Begun): void
}

/**
 * Gathers the body of an answer, in memory that is counted from its first byte until the outcome is reported.
 * @param limits for an answer of any length
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

/** Takes so much memory if it is there. */
function takes(memory: StreamMemory, bytes: number): boolean {
  try {
    memory.take(bytes)
    return true
  } catch {
    return false
  }
}

/** One buffer of all parts, which is the part itself where there is one. */
function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts)
}
