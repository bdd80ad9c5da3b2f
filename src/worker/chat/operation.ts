import { CHAT_ERRORS } from '../completion/operation-parts.ts'
import { MEMBER_HEADERS_DOC } from '../completion/header-members.ts'
import { TIMEOUT_HEADER_DOC } from '../completion/options.ts'
import { chatBodySchema } from '../completion/request-members.ts'
import { RECEIPT_HEADER } from '../http/headers-doc.ts'
import type { Operation } from '../http/operation.ts'
import { chunkSchema, completionSchema } from './schemas.ts'

export const CHAT_OPERATION: Operation = {
  summary: 'Complete a chat, streamed or whole',
  tag: 'Chat',
  headers: { ...RECEIPT_HEADER, ...TIMEOUT_HEADER_DOC, ...MEMBER_HEADERS_DOC },
  body: {
    mediaType: 'application/json',
    content: { name: 'ChatCompletionRequest', schema: chatBodySchema },
  },
  answer: {
    'application/json': { name: 'ChatCompletion', schema: completionSchema },
    'text/event-stream': { name: 'ChatCompletionChunk', schema: chunkSchema },
  },
  errors: CHAT_ERRORS,
}
