import type { AnswerHead } from './answer-head.ts'
import type { Delta } from './delta.ts'
import { NOTHING_WRITTEN, type ChunkWriter } from './encoder.ts'
import type { Logprobs } from './logprobs.ts'

/** The chunks of a streamed chat completion except the last, and the text with which each of them starts. */
export interface ChatChunks extends ChunkWriter {
  /** The text of a chunk up to its delta. */
  readonly start: string
}

/** Writes all chunks of a streamed chat completion except the last. */
export function chatChunks({ id, created, model }: AnswerHead): ChatChunks {
  const shared = JSON.stringify({ id, object: 'chat.completion.chunk', created, model })
  const start = `data: ${shared.slice(0, -1)},"choices":[{"index":0,"delta":`
  const chunk = (delta: object, logprobs: Logprobs | null) => {
    const logprobsJson = logprobs === null ? '' : `,"logprobs":${JSON.stringify(logprobs)}`
    return `${start}${JSON.stringify(delta)}${logprobsJson},"finish_reason":null}]}\n\n`
  }
  return {
    start,
    open: () => chunk({ role: 'assistant', content: '' }, null),
    plainText: (text) => `${start}{"content":"${text}"},"finish_reason":null}]}\n\n`,
    delta: (delta) => chunk(deltaMembers(delta), delta.logprobs),
    finish: () => '',
    // The last chunk is the same whatever precedes it.
    tail: NOTHING_WRITTEN,
  }
}

function deltaMembers({ reasoning, content, refusal, toolCalls }: Delta): object {
  return {
    ...(reasoning !== undefined && { reasoning }),
    ...(content !== undefined && { content }),
    ...(refusal !== undefined && { refusal }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  }
}
