import { z } from 'zod'
import { describeMembers } from '../completion/member-rules.ts'
import {
  CHAT_ERRORS,
  PAID_CHAT_ANSWER_HEADERS,
  PAID_CHAT_HEADERS,
} from '../completion/operation-parts.ts'
import type { Operation } from '../http/operation.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'
import { EMBEDDINGS_MEMBERS } from './members.ts'

const bodySchema = z.looseObject({
  ...describeMembers(EMBEDDINGS_MEMBERS),
  model: z.string().describe('A route selector.'),
  encoding_format: z.enum(['float', 'base64']).nullish(),
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
