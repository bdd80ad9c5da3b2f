import { authenticate } from '../auth/authenticate.ts'
import { readChatBody } from '../completion/request-body.ts'
import type { Handler } from '../context.ts'
import { json } from '../http/reply.ts'
import { costOfBytes } from '../limits/fair-turns.ts'
import { estimatePromptTokens } from '../provider/estimate.ts'
import { planChat } from '../routing/plan.ts'
import { parseMessagesRequest } from './request.ts'

/**
 * POST /v1/messages/count_tokens: the router's own estimate of a prompt, made without a provider. It is free and
 * writes no usage row.
 */
export const countTokens: Handler = async (request, context) => {
  const body = await readChatBody(request, context)
  return context.inTurn(costOfBytes(body.length), async () => {
    await authenticate(request, context)
    const { chat } = parseMessagesRequest(body)
    planChat(context.catalogue, chat, { order: (routes) => routes })
    return json({ input_tokens: estimatePromptTokens(chat) })
  })
}
