import { requireFewValues } from '../completion/few-values.ts'
import { serveCompletions } from '../completion/handler.ts'
import { parseChatRequest } from '../completion/request.ts'
import { chatFormat } from './encoder.ts'

/** POST /v1/chat/completions: the format of the internal request, so its bytes are forwarded unchanged. */
export const completeChat = serveCompletions({
  endpoint: '/v1/chat/completions',
  decode: (body) => {
    requireFewValues(body)
    const chat = parseChatRequest(body)
    return { chat, dropped: [], format: chatFormat(chat.includeUsage) }
  },
})
