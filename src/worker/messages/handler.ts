import { serveCompletions } from '../completion/handler.ts'
import { estimatePromptTokens } from '../provider/estimate.ts'
import { messagesFormat } from './encoder.ts'
import { parseMessagesRequest } from './request.ts'

/** POST /v1/messages. */
export const createMessage = serveCompletions({
  endpoint: '/v1/messages',
  decode: (body) => {
    const { chat, dropped, stopSequences } = parseMessagesRequest(body)
    const promptEstimate = estimatePromptTokens(chat)
    return { chat, dropped, format: messagesFormat({ promptEstimate, stopSequences }) }
  },
})
