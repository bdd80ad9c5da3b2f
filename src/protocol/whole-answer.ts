import * as z from 'zod'
import { constraintsSchema } from './constraints.ts'
import { hex32 } from './hex-schema.ts'
import { MAX_RESPONSE_ID_CHARS, signResponseSchema } from './link.ts'
import { RECEIPT_ENDPOINTS } from './receipt.ts'
import {
  billingSchema,
  chatFormatSchema,
  messagesFormatSchema,
  tallyCountsSchema,
} from './stream-record.ts'

/**
 * Complete answers that the daemon writes: the daemon reads the provider's answer, and sends the worker the body for
 * the client together with the signed receipt. The worker settles both.
 */

/** The format of the answer, by endpoint, and what the answer depends on. */
const wholeAnswerFormatSchema = z.discriminatedUnion('door', [
  chatFormatSchema,
  messagesFormatSchema,
])

export type WholeAnswerFormat = z.output<typeof wholeAnswerFormatSchema>

/** The claims of a receipt that are known before the provider answers. */
const receiptSpecSchema = z.strictObject({
  jti: z.uuid(),
  endpoint: z.enum(RECEIPT_ENDPOINTS),
  client_request_digest: hex32,
  constraints: constraintsSchema.optional(),
  /** Whether tokens are billed; otherwise the receipt states none. */
  bills_tokens: z.boolean(),
  /** As in `signRequestSchema`. */
  configuration_sha256: hex32,
  known_head: hex32.optional(),
})

/** `CallHead.whole` of an egress call that is a message. */
export const wholeAnswerSpecSchema = z.strictObject({
  /** The id of the answer. */
  id: z.string(),
  requested_route: z.string(),
  /** The route that serves. */
  routed_model: z.string(),
  failover: z.boolean(),
  format: wholeAnswerFormatSchema,
  include_reasoning: z.boolean(),
  billing: billingSchema,
  /** Null: no receipt is wanted. */
  receipt: receiptSpecSchema.nullable(),
})

export type WholeAnswerSpec = z.output<typeof wholeAnswerSpecSchema>

/**
 * The record by which the worker settles a complete answer: `AnswerHead.whole`, where the daemon has written the
 * answer.
 */
export const wholeAnswerRecordSchema = z.object({
  counts: tallyCountsSchema,
  provider_response_id: z.string().max(MAX_RESPONSE_ID_CHARS).nullable(),
  /** SHA-256 of the bytes sent to the provider, and of its answer. */
  request_sha256: hex32,
  response_sha256: hex32,
  /** One receipt. Null where none was requested, or where the worker must request it itself. */
  signed: signResponseSchema.nullable(),
})

export type WholeAnswerRecord = z.output<typeof wholeAnswerRecordSchema>
