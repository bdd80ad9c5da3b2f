import { z } from 'zod'
import { constraintsSchema } from '../../protocol/constraints.ts'
import { describeMembers } from '../completion/member-rules.ts'
import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import { failoverSchema } from '../completion/request-members.ts'
import type { Operation } from '../http/operation.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { EMBEDDINGS_MEMBERS } from './members.ts'

const text = z.string().min(1)
const tokens = z.array(z.int().min(0)).min(1)

/** The members in the forms that `parseEmbeddingsRequest` accepts. */
const bodySchema = z.looseObject({
  ...describeMembers(EMBEDDINGS_MEMBERS, {
    input: z.union([text, z.array(text).min(1), tokens, z.array(tokens).min(1)]),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    dimensions: z.int().min(1).max(65_536).nullish(),
    user: z.string().nullish(),
    failover: failoverSchema.nullish(),
    attestation: constraintsSchema.nullish(),
  }),
  model: z.string().describe('A route selector.'),
})

const answerSchema = z.looseObject({
  object: z.literal('list'),
  data: z.array(
    z.object({
      object: z.literal('embedding'),
      index: z.int(),
      embedding: z.union([z.array(z.number()), z.string()]),
    }),
  ),
  model: z.string().describe('The route that served.'),
  usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
  service: serviceObjectSchema.optional(),
})

const REASONING_ERRORS = new Set(['unsupported_reasoning', 'unsupported_image_url'])

export const EMBEDDINGS_OPERATION: Operation = {
  summary: 'Turn texts or token ids into vectors',
  tag: 'Embeddings',
  headers: PAID_CHAT_HEADERS,
  answerHeaders: PAID_CHAT_ANSWER_HEADERS,
  body: {
    mediaType: 'application/json',
    content: { name: 'EmbeddingsRequest', schema: bodySchema },
  },
  answer: { 'application/json': { name: 'Embeddings', schema: answerSchema } },
  errors: CHAT_ERRORS.filter((code) => !REASONING_ERRORS.has(code)),
}
