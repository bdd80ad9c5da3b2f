import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import { chatBodySchema } from '../completion/request-members.ts'
import type { Operation } from '../http/operation.ts'
import { completionSchema, eventSchema } from './schemas.ts'

export const CHAT_OPERATION: Operation = {
  summary: 'Complete a chat, streamed or whole',
  tag: 'Chat',
  headers: PAID_CHAT_HEADERS,
  answerHeaders: PAID_CHAT_ANSWER_HEADERS,
  body: {
    mediaType: 'application/json',
    content: { name: 'ChatCompletionRequest', schema: chatBodySchema },
  },
  answer: {
    'application/json': { name: 'ChatCompletion', schema: completionSchema },
    'text/event-stream': { name: 'ChatCompletionChunk', schema: eventSchema },
  },
  errors: CHAT_ERRORS,
}
