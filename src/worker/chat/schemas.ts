import { z } from 'zod'
import { errorSchema } from '../http/error-schema.ts'
import { serviceObjectSchema } from '../settle/service-schema.ts'

/** Schemas of chat completion answers for the interface description; the encoder writes them. */

const usage = z.looseObject({
  prompt_tokens: z.int().min(0),
  completion_tokens: z.int().min(0),
  total_tokens: z.int().min(0),
  prompt_tokens_details: z
    .object({ cached_tokens: z.int(), cache_write_tokens: z.int().optional() })
    .optional(),
  completion_tokens_details: z.object({ reasoning_tokens: z.int() }).optional(),
})

const calledFunction = z.object({
  name: z.string(),
  arguments: z.string().describe('JSON as text.'),
})

const message = z.object({
  role: z.literal('assistant'),
  content: z.string().nullable(),
  refusal: z.string().nullable(),
  reasoning: z.string().optional(),
  tool_calls: z
    .array(z.object({ id: z.string(), type: z.literal('function'), function: calledFunction }))
    .optional(),
})

const logprobs = z.record(z.string(), z.unknown()).nullable()

export const completionSchema = z.object({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string().describe('The route that served.'),
  choices: z.array(
    z.object({ index: z.int(), message, logprobs, finish_reason: z.string().nullable() }),
  ),
  usage: usage.optional(),
  service: serviceObjectSchema,
})

const delta = z.object({
  role: z.literal('assistant').optional(),
  content: z.string().nullish(),
  refusal: z.string().optional(),
  reasoning: z.string().optional(),
  tool_calls: z
    .array(
      z.object({
        index: z.int(),
        id: z.string().optional(),
        type: z.literal('function').optional(),
        function: calledFunction.partial().optional(),
      }),
    )
    .optional(),
})

const chunk = z.object({
  id: z.string(),
  object: z.literal('chat.completion.chunk'),
  created: z.int(),
  model: z.string(),
  choices: z.array(
    z.object({
      index: z.literal(0),
      delta,
      logprobs: logprobs.optional(),
      finish_reason: z.string().nullable().describe('Null on every chunk but the last.'),
    }),
  ),
  usage: usage.optional().describe('On the last chunk, with `stream_options.include_usage`.'),
  service: serviceObjectSchema.optional().describe('On the last chunk.'),
})

/** The `data` of an event: a chunk, or the error that ends a stream without `[DONE]`. */
export const eventSchema = z.union([
  chunk,
  errorSchema.describe('Ends a stream that fails after its start; no `[DONE]` follows.'),
])
