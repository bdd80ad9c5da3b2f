import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'

/**
 * An answer that a test prescribes byte for byte, to simulate faults that no regular provider shows: malformed frames,
 * errors inside a 200, silence, connections cut in the middle.
 */
export const scriptedAnswerSchema = z.strictObject({
  /** The provider prefix of the requests that get this answer; absent for any provider. */
  provider: z.string().optional(),
  /** The number of requests that get this answer. */
  times: z.int().min(1).default(1),
  status: z.int().min(200).max(599).default(200),
  headers: z.record(z.string(), z.string()).default({ 'content-type': 'text/event-stream' }),
  /** Delay before the status line. */
  delay_ms: z.int().min(0).default(0),
  /** The parts of the body, each written separately. */
  frames: z.array(z.string()).default([]),
  /** The encoding of the frames. */
  encoding: z.enum(['utf8', 'base64']).default('utf8'),
  frame_delay_ms: z.int().min(0).default(0),
  /** `end` closes cleanly, `reset` destroys the connection, `hang` stays silent. */
  end: z.enum(['end', 'reset', 'hang']).default('end'),
})

export type ScriptedAnswer = z.output<typeof scriptedAnswerSchema>

/** The remaining scripted answers, in order. */
export class Script {
  #waiting: ScriptedAnswer[] = []

  add(answer: ScriptedAnswer): void {
    this.#waiting.push(answer)
  }

  clear(): void {
    this.#waiting = []
  }

  /** The next answer for a provider; removes it from the script after its last use. */
  take(provider: string): ScriptedAnswer | undefined {
    const index = this.#waiting.findIndex(
      (a) => a.provider === undefined || a.provider === provider,
    )
    const answer = this.#waiting[index]
    if (answer === undefined) return undefined
    const left = answer.times - 1
    this.#waiting.splice(index, 1, ...(left > 0 ? [{ ...answer, times: left }] : []))
    return answer
  }
}

/** The destination of an answer. */
export interface AnswerSink {
  head(status: number, headers: Record<string, string>): void
  write(bytes: Buffer): void
  end(): void
  reset(): void
}

/** Plays one scripted answer. */
export async function play(answer: ScriptedAnswer, sink: AnswerSink): Promise<void> {
  if (answer.delay_ms > 0) await delay(answer.delay_ms)
  if (answer.frames.length > 0 || answer.end === 'end') sink.head(answer.status, answer.headers)
  for (const frame of answer.frames) {
    sink.write(Buffer.from(frame, answer.encoding))
    if (answer.frame_delay_ms > 0) await delay(answer.frame_delay_ms)
  }
  if (answer.end === 'end') sink.end()
  if (answer.end === 'reset') sink.reset()
}
