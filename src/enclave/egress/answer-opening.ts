import { z } from 'zod'

/** The part of a chunk of a chat stream that shows whether output has begun; other members are ignored. */
const outputSchema = z.object({
  choices: z.tuple(
    [
      z.object({
        index: z.literal(0).optional(),
        delta: z.union([
          z.object({ content: z.string().min(1) }),
          z.object({ reasoning: z.string().min(1) }),
          z.object({ reasoning_content: z.string().min(1) }),
        ]),
      }),
    ],
    z.unknown(),
  ),
})

/** The worker abandons an attempt when more events than this precede its first output. */
const MAX_OPENING_EVENTS = 64

const DATA = 'data:'

/**
 * Watches the start of a provider's event stream for the first output. It may detect the output late (at the latest
 * after 64 events), but never early: until then each chunk is relayed at once, so that the first delta is not delayed.
 */
export class AnswerOpening {
  #events = 0
  #over = false

  /** Whether the first output has been seen. */
  get over(): boolean {
    return this.#over
  }

  /** Reads the next chunk. A line that is split across two chunks is ignored. */
  read(chunk: Uint8Array): void {
    for (const line of Buffer.from(chunk)
      .toString('utf8')
      .split(/[\r\n]+/)) {
      const event = line.startsWith(DATA) ? parseObject(line.slice(DATA.length)) : undefined
      if (event === undefined) continue
      this.#events += 1
      this.#over ||= this.#events > MAX_OPENING_EVENTS || outputSchema.safeParse(event).success
    }
  }
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
