import { z } from 'zod'
import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import { constraintsSchema } from '../../protocol/constraints.ts'
import { describeMembers } from '../completion/member-rules.ts'
import { failoverSchema } from '../completion/request-members.ts'
import type { Operation } from '../http/operation.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { MESSAGES_MEMBERS } from './members.ts'

const blocks = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
const jsonSchema = z.looseObject({
  type: z.literal('json_schema'),
  schema: z.record(z.string(), z.unknown()),
})

/** The members in the forms that `parseMessagesRequest` accepts. */
const bodySchema = z.looseObject({
  ...describeMembers(MESSAGES_MEMBERS, {
    messages: z
      .array(z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content: blocks }))
      .min(1),
    system: blocks.nullish(),
    max_tokens: z.int().min(1).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    stop_sequences: z.array(z.string()).nullish(),
    tools: z.array(z.looseObject({})).nullish(),
    tool_choice: z.looseObject({ type: z.enum(['auto', 'any', 'tool', 'none']) }).nullish(),
    thinking: z
      .looseObject({
        type: z.enum(['enabled', 'adaptive', 'disabled']),
        budget_tokens: z.int().min(1).optional(),
        display: z.string().nullish(),
      })
      .nullish(),
    output_config: z
      .looseObject({ effort: z.string().nullish(), format: jsonSchema.nullish() })
      .nullish(),
    output_format: jsonSchema.nullish(),
    failover: failoverSchema.nullish(),
    attestation: constraintsSchema.nullish(),
  }),
  model: z.string().describe('A route selector, or `auto`.'),
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
