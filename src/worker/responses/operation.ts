import { z } from 'zod'
import type { Operation } from '../http/operation.ts'
import { describeMembers } from '../completion/member-rules.ts'
import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { RESPONSES_MEMBERS } from './members.ts'

const responsesBodySchema = z.looseObject({
  ...describeMembers(RESPONSES_MEMBERS),
  model: z.string().describe('A route selector, or `auto`.'),
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  stream: z.boolean().nullish(),
})

const responseSchema = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  model: z.string().describe('The route that served.'),
  output: z.array(z.looseObject({ type: z.string() })),
  service: serviceObjectSchema.optional(),
})

const eventSchema = z.looseObject({ type: z.string(), sequence_number: z.int().optional() })

export const RESPONSES_OPERATION: Operation = {
  summary: 'Answer a conversation in the form of the Responses API, without memory',
  tag: 'Chat',
  headers: PAID_CHAT_HEADERS,
  answerHeaders: PAID_CHAT_ANSWER_HEADERS,
  body: {
    mediaType: 'application/json',
    content: { name: 'ResponsesRequest', schema: responsesBodySchema },
  },
  answer: {
    'application/json': { name: 'ResponsesAnswer', schema: responseSchema },
    'text/event-stream': { name: 'ResponsesEvent', schema: eventSchema },
  },
  errors: CHAT_ERRORS,
}
