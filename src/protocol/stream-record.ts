import * as z from 'zod'
import { hex32 } from './hex-schema.ts'
import { MAX_RESPONSE_ID_CHARS } from './link.ts'

/**
 * Streams whose chunks the daemon writes: the daemon reads the provider's answer, and sends the worker the bytes for
 * the client up to the last event, which the worker writes after settlement.
 */

const count = z.int().min(0)

/** Most bytes that may precede the provider's request in the body of a call; they are for the daemon itself. */
export const MAX_PREAMBLE_BYTES = 256 * 1024

/** What answers of `/v1/chat/completions` depend on. */
export const chatFormatSchema = z.strictObject({ door: z.literal('chat') })

/** What answers of `/v1/messages` depend on. */
export const messagesFormatSchema = z.strictObject({
  door: z.literal('messages'),
  prompt_estimate: count,
  /** The stop sequences of the request. */
  stop_sequences: z.array(z.string()),
})

export type MessagesFormat = z.output<typeof messagesFormatSchema>

/**
 * Limits and estimates from which the token counts that the client sees are computed, the same as those that are
 * billed.
 */
export const billingSchema = z.strictObject({
  prompt_estimate: count,
  max_prompt_tokens: count,
  max_completion_tokens: count,
})

export type BillingLimits = z.output<typeof billingSchema>

/** The format of the client's stream, by endpoint, and what its chunks depend on. */
const chunkFormatSchema = z.discriminatedUnion('door', [
  chatFormatSchema,
  messagesFormatSchema,
  z.strictObject({
    door: z.literal('responses'),
    encrypted_content: z.boolean(),
    /** Length of the `ResponsesPreamble` at the start of the call's body, JSON in UTF-8, bytes. */
    ahead_bytes: z.int().min(1).max(MAX_PREAMBLE_BYTES),
  }),
])

export type ChunkFormat = z.output<typeof chunkFormatSchema>

/**
 * How a provider's function is shown to the client: as the tool that it was before it was converted to a plain
 * function.
 */
const toolIdentitySchema = z.strictObject({
  kind: z.enum(['function', 'custom']),
  name: z.string(),
  namespace: z.string().optional(),
})

export type ToolIdentity = z.output<typeof toolIdentitySchema>

const responsesPreambleSchema = z.strictObject({
  /** The events before the first item, and their number. */
  opening: z.strictObject({ text: z.string(), count }),
  /** Tools by the name that the provider knows. */
  tools: z.array(z.tuple([z.string(), toolIdentitySchema])),
})

export type ResponsesPreamble = z.output<typeof responsesPreambleSchema>

/** Parses the part of the body that precedes the provider's request; undefined when it is malformed. */
export function parseResponsesPreamble(json: string): ResponsesPreamble | undefined {
  try {
    return responsesPreambleSchema.safeParse(JSON.parse(json)).data
  } catch {
    return undefined
  }
}

/** The value of `EGRESS_CHUNKS_HEADER` on an egress call, as URI-encoded JSON. */
export const streamSpecSchema = z.strictObject({
  /** Names the stream for `LINK_PATHS.streams`; random. */
  stream: z.uuid(),
  /** The customer; memory for large events is shared among customers. */
  owner: z.string().min(1).max(64),
  /** The head of every chunk. */
  head: z.strictObject({ id: z.string(), created: z.int(), model: z.string() }),
  format: chunkFormatSchema,
  include_reasoning: z.boolean(),
  billing: billingSchema,
  /** How long the provider may be silent after the commit point, ms. */
  idle_ms: z.int().min(1),
  /** After the commit point, a comment is sent to the client when it has received nothing for this long, ms. */
  keep_alive_ms: z.int().min(1),
  /**
   * How long the record is kept once the provider's answer has ended, ms, for a worker whose client has not taken all
   * of it yet.
   */
  record_ms: z.int().min(1).max(2_147_483_647),
  /**
   * The worker's chunk connection (`CHUNKS_PATH`) that the chunks must be sent on, and the stream's number there. If
   * absent, or if there is no such connection, the chunks are in the answer to the call.
   */
  to: z.strictObject({ connection: z.uuid(), stream: z.int().min(0).max(0xffff_ffff) }).optional(),
})

export type ChunkAddress = NonNullable<StreamSpec['to']>

export type StreamSpec = z.output<typeof streamSpecSchema>

/** Encodes the specification as a header value. */
export function printStreamSpec(spec: StreamSpec): string {
  return encodeURIComponent(JSON.stringify(spec))
}

/** Decodes the specification in a header value; undefined when it is malformed. */
export function parseStreamSpec(header: string): StreamSpec | undefined {
  try {
    return streamSpecSchema.safeParse(JSON.parse(decodeURIComponent(header))).data
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
 * - `no_memory`: the router has no memory left for an event of that size; not the provider's fault
 * - `text_too_long`: the text is longer than what the router holds until the end of an answer; not the provider's fault
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
 * - `stopped`: the worker ended it, or disconnected
 * - `idle`: the provider was silent for too long
 * - `lost`: the connection to the provider broke
 * - `broken`: the provider sent something that cannot be passed on
 */
const streamEndingSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['complete', 'stopped', 'idle', 'lost']) }),
  z.object({ kind: z.literal('broken'), reason: brokenReasonSchema }),
])

export type StreamEnding = z.output<typeof streamEndingSchema>

/**
 * The state from which the last event of a stream is written. A member that the format does not use keeps its initial
 * value.
 */
const answerTailSchema = z.object({
  /** How many events were sent. */
  events: count,
  /** How many blocks were begun, and the kind of the open one. */
  blocks: count,
  open: z.enum(['reasoning', 'text', 'refusal', 'tool']).nullable(),
  /** The complete items of the answer, which its last event repeats. */
  output: z.array(z.custom<object>((item) => typeof item === 'object' && item !== null)),
})

export type AnswerTail = Readonly<z.output<typeof answerTailSchema>>

/** The record by which the worker settles a stream. */
export const streamRecordSchema = z.object({
  ending: streamEndingSchema,
  finish_reason: z.string().nullable(),
  tail: answerTailSchema,
  counts: tallyCountsSchema,
  provider_response_id: z.string().max(MAX_RESPONSE_ID_CHARS).nullable(),
  /** SHA-256 of all bytes of the provider's answer that were read. */
  provider_sha256: hex32,
  /** SHA-256 of all bytes that were sent to the worker. */
  client_sha256: hex32,
})

export type StreamRecord = z.output<typeof streamRecordSchema>
