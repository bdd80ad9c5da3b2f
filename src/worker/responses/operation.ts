import { z } from 'zod'
import type { Operation } from '../http/operation.ts'
import { constraintsSchema } from '../../protocol/constraints.ts'
import { EFFORTS } from '../../protocol/effort.ts'
import { describeMembers } from '../completion/member-rules.ts'
import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import { failoverSchema } from '../completion/request-members.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { RESPONSES_MEMBERS } from './members.ts'

/** The members in the forms that `parseResponsesRequest` accepts. */
const responsesBodySchema = z.looseObject({
  ...describeMembers(RESPONSES_MEMBERS, {
    input: z.union([z.string(), z.array(z.looseObject({})).min(1)]),
    instructions: z.string().nullish(),
    stream: z.boolean().nullish(),
    max_output_tokens: z.int().min(1).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    reasoning: z
      .looseObject({
        effort: z.enum([...EFFORTS, 'none']).nullish(),
        summary: z.string().nullish(),
      })
      .nullish(),
    text: z
      .looseObject({
        format: z.looseObject({ type: z.enum(['text', 'json_object', 'json_schema']) }).nullish(),
        verbosity: z.string().nullish(),
      })
      .nullish(),
    tools: z.array(z.looseObject({ type: z.string() })).nullish(),
    tool_choice: z
      .union([z.enum(['auto', 'none', 'required']), z.looseObject({ type: z.string() })])
      .nullish(),
    include: z.array(z.string()).nullish(),
    metadata: z.record(z.string(), z.string()).nullish(),
    include_reasoning: z.boolean().nullish(),
    failover: failoverSchema.nullish(),
    attestation: constraintsSchema.nullish(),
  }),
  model: z.string().describe('A route selector, or `auto`.'),
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
