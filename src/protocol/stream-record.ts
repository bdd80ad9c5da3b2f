import * as z from 'zod'
import { hex32 } from './hex-schema.ts'
import { MAX_RESPONSE_ID_CHARS } from './link.ts'

/**
 * A stream whose chunks the daemon writes: it reads the provider's answer, and sends the worker the bytes that the
 * client is to receive, up to the last event, which the worker writes after settlement.
 */

const count = z.int().min(0)

/** Bytes that may precede the provider's request in the body of a call, for the daemon alone. */
export const MAX_AHEAD_BYTES = 256 * 1024

/** What answers of `/v1/chat/completions` depend on. */
export const chatDoorSchema = z.strictObject({ door: z.literal('chat') })

/** What answers of `/v1/messages` depend on. */
export const messagesDoorSchema = z.strictObject({
  door: z.literal('messages'),
  prompt_estimate: count,
  /** Those of the request. */
  stop_sequences: z.array(z.string()),
})

export type MessagesDoor = z.output<typeof messagesDoorSchema>

/** What the counts that the client is shown are limited to and completed by, as they are billed. */
export const billingSchema = z.strictObject({
  prompt_estimate: count,
  max_prompt_tokens: count,
  max_completion_tokens: count,
})

export type OrderedBilling = z.output<typeof billingSchema>

/** The format of the client's stream, by the endpoint that was asked, and what its chunks depend on. */
const chunkFormatSchema = z.discriminatedUnion('door', [
  chatDoorSchema,
  messagesDoorSchema,
  z.strictObject({
    door: z.literal('responses'),
    encrypted_content: z.boolean(),
    /** How long the `ResponsesAhead` is that the call's body begins with, as JSON in UTF-8. */
    ahead_bytes: z.int().min(1).max(MAX_AHEAD_BYTES),
  }),
])

export type ChunkFormat = z.output<typeof chunkFormatSchema>

/** How a provider's function is shown to the client: the tool it was before it became a plain function. */
const toolIdentitySchema = z.strictObject({
  kind: z.enum(['function', 'custom']),
  name: z.string(),
  namespace: z.string().optional(),
})

export type ToolIdentity = z.output<typeof toolIdentitySchema>

const responsesAheadSchema = z.strictObject({
  /** The events before the first item, and how many they are. */
  opening: z.strictObject({ text: z.string(), count }),
  /** By the name that the provider knows. */
  tools: z.array(z.tuple([z.string(), toolIdentitySchema])),
})

export type ResponsesAhead = z.output<typeof responsesAheadSchema>

/** What precedes the provider's request; undefined when it is malformed. */
export function parseResponsesAhead(json: string): ResponsesAhead | undefined {
  try {
    return responsesAheadSchema.safeParse(JSON.parse(json)).data
  } catch {
    return undefined
  }
}

/** In `EGRESS_CHUNKS_HEADER` of an egress call, as URI-encoded JSON. */
export const chunkOrderSchema = z.strictObject({
  /** Names the stream for `LINK_PATHS.streams`; random. */
  stream: z.uuid(),
  /** The customer, among whom memory for large events is shared out. */
  owner: z.string().min(1).max(64),
  /** The head of every chunk. */
  head: z.strictObject({ id: z.string(), created: z.int(), model: z.string() }),
  format: chunkFormatSchema,
  include_reasoning: z.boolean(),
  billing: billingSchema,
  /** How long the provider may be silent after the commit point. */
  idle_ms: z.int().min(1),
  /** A comment is sent to the client when it has received nothing for this long, from the commit point on. */
  keep_alive_ms: z.int().min(1),
  /**
   * How long the record is kept once the provider's answer has ended, for a worker whose client has not taken all of it
   * yet, ms.
   */
  record_ms: z.int().min(1).max(2_147_483_647),
  /**
   * The worker's connection for chunks (`CHUNKS_PATH`) on which they are to be sent, and the stream's number there. Without it, or where
   * there is no such connection, they are in the answer to the call.
   */
  to: z.strictObject({ connection: z.uuid(), stream: z.int().min(0).max(0xffff_ffff) }).optional(),
})

export type ChunkAddress = NonNullable<ChunkOrder['to']>

export type ChunkOrder = z.output<typeof chunkOrderSchema>

/** The order as a header value. */
export function printChunkOrder(order: ChunkOrder): string {
  return encodeURIComponent(JSON.stringify(order))
}

/** The order of a header value; undefined when it is malformed. */
export function parseChunkOrder(header: string): ChunkOrder | undefined {
  try {
    return chunkOrderSchema.safeParse(JSON.parse(decodeURIComponent(header))).data
  } catch {
    return undefined
  }
}

/**
 * Why a provider's answer cannot be passed on as complete.
 * - `error_event`: the provider reported an error inside its answer
 * - `rate_limited`: the same, and the error reports a rate limit
 * - `malformed`: an event is not a JSON object, not UTF-8, or has a member of the wrong type
 * - `too_long`: a line or an event is longer than 16 MiB
 * - `no_finish`: the answer ended without a finish reason
 * - `bad_finish`: the finish reason reports a failed generation, or is not a short string
 * - `opening_too_long`: too many frames or bytes before the first delta with content
 * - `no_memory`: the router has no memory left for an event of that size, which is no fault of the provider
 * - `text_too_long`: the text is longer than what the router holds until the end of an answer, which is none either
 */
const brokenReasonSchema = z.enum([
  'error_event',
  'rate_limited',
  'malformed',
  'too_long',
  'no_finish',
  'bad_finish',
  'opening_too_long',
  'no_memory',
  'text_too_long',
])

export type BrokenReason = z.output<typeof brokenReasonSchema>

export const tallyCountsSchema = z.object({
  prompt: count,
  completion: count,
  total: count.optional(),
  cached: count.optional(),
  cache_write: count.optional(),
  reasoning: count.optional(),
  uncounted_text_bytes: count,
})

/** The state of a tally of a provider's token counts (src/worker/stream/usage-tally.ts). */
export type TallyCounts = z.output<typeof tallyCountsSchema>

/**
 * How a stream ended.
 * - `complete`: the provider ended it, or was silent after its finish reason
 * - `stopped`: the worker ended it, or left
 * - `idle`: the provider was silent for too long
 * - `lost`: the connection to the provider broke
 * - `broken`: the provider sent what cannot be passed on
 */
const streamEndingSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['complete', 'stopped', 'idle', 'lost']) }),
  z.object({ kind: z.literal('broken'), reason: brokenReasonSchema }),
])

export type StreamEnding = z.output<typeof streamEndingSchema>

/** What the last event of a stream continues. A member that its format has no use for stays as it is at the start. */
const answerTailSchema = z.object({
  /** How many events were sent. */
  events: count,
  /** How many blocks were begun, and the kind of the one that is open. */
  blocks: count,
  open: z.enum(['reasoning', 'text', 'refusal', 'tool']).nullable(),
  /** The whole items of the answer, which its last event repeats. */
  output: z.array(z.custom<object>((item) => typeof item === 'object' && item !== null)),
})

export type AnswerTail = Readonly<z.output<typeof answerTailSchema>>

/** What the worker settles a stream by. */
export const streamRecordSchema = z.object({
  ending: streamEndingSchema,
  finish_reason: z.string().nullable(),
  tail: answerTailSchema,
  counts: tallyCountsSchema,
  provider_response_id: z.string().max(MAX_RESPONSE_ID_CHARS).nullable(),
  /** Of all bytes of the provider's answer that were read. */
  provider_sha256: hex32,
  /** Of all bytes that were sent to the worker. */
  client_sha256: hex32,
})

export type StreamRecord = z.output<typeof streamRecordSchema>
