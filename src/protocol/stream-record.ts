import * as z from 'zod'
import { hex32 } from './hex-schema.ts'
import { MAX_RESPONSE_ID_CHARS } from './link.ts'

/**
 * A chat stream whose chunks the daemon writes: it reads the provider's answer, and sends the worker the bytes that the
 * client is to receive, up to the last event, which the worker writes after settlement.
 */

/** In `EGRESS_CHUNKS_HEADER` of an egress call, as URI-encoded JSON. */
export const chunkOrderSchema = z.strictObject({
  /** Names the stream for `LINK_PATHS.streams`; random. */
  stream: z.uuid(),
  /** The head of every chunk. */
  head: z.strictObject({ id: z.string(), created: z.int(), model: z.string() }),
  include_reasoning: z.boolean(),
  /** How long the provider may be silent after the commit point. */
  idle_ms: z.int().min(1),
  /** A comment is sent to the client when it has received nothing for this long, from the commit point on. */
  keep_alive_ms: z.int().min(1),
  /**
   * How long the record is kept once the provider's answer has ended, for a worker whose client has not taken all of it
   * yet, ms.
   */
  record_ms: z.int().min(1).max(2_147_483_647),
})

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
])

export type BrokenReason = z.output<typeof brokenReasonSchema>

const count = z.int().min(0)

const tallyCountsSchema = z.object({
  prompt: count,
  completion: count,
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

/** What the worker settles a stream by. */
export const streamRecordSchema = z.object({
  ending: streamEndingSchema,
  finish_reason: z.string().nullable(),
  counts: tallyCountsSchema,
  provider_response_id: z.string().max(MAX_RESPONSE_ID_CHARS).nullable(),
  /** Of all bytes of the provider's answer that were read. */
  provider_sha256: hex32,
  /** Of all bytes that were sent to the worker. */
  client_sha256: hex32,
})

export type StreamRecord = z.output<typeof streamRecordSchema>
