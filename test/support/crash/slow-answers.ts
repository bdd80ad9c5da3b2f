import type { Standin } from '../standin.ts'

const USAGE = { prompt_tokens: 11, completion_tokens: 12, total_tokens: 23 }
const WORDS = Array.from({ length: 12 }, (_, index) => `word-${index} `)
/** More than any run asks for. */
const TIMES = 1_000_000

export interface Pace {
  /** Between two of a dozen frames. */
  readonly frameDelayMs: number
  /** Before a whole answer. */
  readonly wholeDelayMs: number
}

/**
 * Makes a stand-in answer so slowly that a process killed at a random moment dies in the middle of many answers: the
 * provider `standin` with streams, `standin-two` with whole bodies.
 */
export async function answerSlowly(
  standin: Standin,
  { frameDelayMs, wholeDelayMs }: Pace = { frameDelayMs: 12, wholeDelayMs: 100 },
): Promise<void> {
  await standin.reset()
  await standin.script({
    provider: 'standin',
    times: TIMES,
    frames: [
      ...WORDS.map((content) => chunk({ delta: { role: 'assistant', content } })),
      chunk({ delta: {}, finish_reason: 'stop' }, USAGE),
      'data: [DONE]\n\n',
    ],
    frame_delay_ms: frameDelayMs,
  })
  const message = { role: 'assistant', content: WORDS.join('') }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  await standin.script({
    provider: 'standin-two',
    times: TIMES,
    headers: { 'content-type': 'application/json' },
    delay_ms: wholeDelayMs,
    frames: [JSON.stringify({ ...HEAD, object: 'chat.completion', choices, usage: USAGE })],
  })
}

const HEAD = { id: 'slow', created: 1_790_000_000, model: 'slow' }

function chunk(choice: object, usage?: object): string {
  const choices = [{ index: 0, finish_reason: null, ...choice }]
  const event = { ...HEAD, object: 'chat.completion.chunk', choices, ...(usage ? { usage } : {}) }
  return `data: ${JSON.stringify(event)}\n\n`
}
