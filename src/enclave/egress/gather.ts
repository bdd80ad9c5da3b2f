import type { AnswerBody } from './answer-body.ts'

/** What may be gathered of an answer that does not say how long it is. */
export interface GatherLimits {
  readonly bytes: number
  readonly ms: number
}

/** Told once what became of an answer. */
export interface Gathering {
  whole(body: Buffer): void
  /** Nothing comes after this part, and the answer is not whole. */
  brokenOff(part: Buffer): void
  /** It is larger or slower than the limits, if there are any: the parts that came of it; all that comes is not taken here any more. */
  tooMuch?(parts: readonly Buffer[]): void
}

/**
 * Gathers the body of an answer.
 * @param limits for an answer of any length
 */
export function gather(answer: AnswerBody, told: Gathering, limits?: GatherLimits): void {
  const parts: Buffer[] = []
  let length = 0
  let isOver = false
  const end = (tell: () => void) => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    tell()
  }
  const giveUp = () => end(() => told.tooMuch?.(parts.splice(0)))
  const timer = limits && setTimeout(giveUp, limits.ms)
  answer.on('data', (part) => {
    if (isOver) return
    parts.push(part)
    length += part.length
    if (limits !== undefined && length > limits.bytes) giveUp()
  })
  answer.once('end', () => end(() => told.whole(joined(parts))))
  answer.once('close', () => end(() => told.brokenOff(joined(parts))))
}

/** One buffer of all parts, which is the part itself where there is one. */
function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts)
}
