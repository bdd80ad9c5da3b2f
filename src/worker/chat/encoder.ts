import type { AnswerFormat, LastEvents } from '../completion/format.ts'
import { errorBody } from '../http/errors.ts'
import { chatChunks } from '../stream/chat-chunks.ts'
import { chatCompletionBody, chatUsage } from '../stream/chat-completion.ts'

/** How answers of `/v1/chat/completions` are written; the last chunk of a stream has `usage` if the client asked for it. */
export function chatFormat(includeUsage: boolean): AnswerFormat {
  return {
    idPrefix: 'chatcmpl-',
    chunkWriter: chatChunks,
    chunkFormat: () => ({ format: { door: 'chat' } }),
    wholeFormat: () => ({ door: 'chat' }),
    lastEvents: (head) => lastEvents(chatChunks(head).start, includeUsage),
    wholeBody: chatCompletionBody,
  }
}

function lastEvents(start: string, includeUsage: boolean): LastEvents {
  return {
    close: (_tail, { finishReason, usage }, service) => {
      const shown = includeUsage && usage !== undefined && { usage: chatUsage(usage) }
      const tail = JSON.stringify({ ...shown, service }).slice(1)
      return `${start}{},"finish_reason":${JSON.stringify(finishReason)}}],${tail}\n\ndata: [DONE]\n\n`
    },
    // No `[DONE]` follows, so that no client takes the answer for complete.
    fail: (_tail, error) => `data: ${JSON.stringify(errorBody(error))}\n\n`,
  }
}
