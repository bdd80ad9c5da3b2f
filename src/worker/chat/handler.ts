import { serveCompletions } from '../completion/handler.ts'
import { parseChatRequest } from '../completion/request.ts'
import { chatStreamEncoder, chatCompletionBody } from './encoder.ts'

/** POST /v1/chat/completions: the format of the internal request, so its bytes are forwarded unchanged. */
export const completeChat = serveCompletions({
  endpoint: '/v1/chat/completions',
  decode: (body) => {
    const chat = parseChatRequest(body)
    return {
      chat,
      dropped: [],
      format: {
        idPrefix: 'chatcmpl-',
        streamEncoder: (head) => chatStreamEncoder(head, chat.includeUsage),
        chunksByDaemon: true,
        wholeBody: chatCompletionBody,
      },
    }
  },
})
