import { z } from 'zod'
import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import { describeMembers } from '../completion/member-rules.ts'
import type { Operation } from '../http/operation.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { MESSAGES_MEMBERS } from './members.ts'

const bodySchema = z.looseObject({
  ...describeMembers(MESSAGES_MEMBERS),
  model: z.string().describe('A route selector, or `auto`.'),
  messages: z.array(z.looseObject({ role: z.string() })),
})

const messageSchema = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string().describe('The route that served.'),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string(),
  service: serviceObjectSchema.optional(),
})

const eventSchema = z.looseObject({ type: z.string() })

const body = {
  mediaType: 'application/json',
  content: { name: 'MessagesRequest', schema: bodySchema },
}

export const MESSAGES_OPERATION: Operation = {
  summary: 'Answer a conversation in the form of the Messages API',
  tag: 'Chat',
  headers: PAID_CHAT_HEADERS,
  answerHeaders: PAID_CHAT_ANSWER_HEADERS,
  body,
  answer: {
    'application/json': { name: 'Message', schema: messageSchema },
    'text/event-stream': { name: 'MessageEvent', schema: eventSchema },
  },
  errors: CHAT_ERRORS,
}

export const COUNT_TOKENS_OPERATION: Operation = {
  summary: "Estimate the tokens of a conversation; the estimate is the router's own",
  tag: 'Chat',
  body,
  answer: {
    'application/json': {
      name: 'TokenCount',
      schema: z.object({ input_tokens: z.int().min(0) }),
    },
  },
  errors: [
    'invalid_request_error',
    'invalid_attestation_constraint',
    'missing_field',
    'model_not_found',
    'request_too_large',
  ],
}
