import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { BYTES_PER_TOKEN } from '../stream/estimate-text.ts'
import { MEDIA_KINDS, PASSED_MEMBERS, type ChatRequest } from './chat-request.ts'
import type { Range } from '../json/scan.ts'
import type { Route } from './route.ts'

/**
 * The router's own token counts: bounds for reservations, and estimates for billing where no provider reports a
 * count.
 */

const TOKENS_PER_MESSAGE = 16
const TOKENS_PER_IMAGE = 4096

/** ceil(UTF-8 bytes of text and tools / 3) + 16 per message + 4,096 per image or other medium. */
export function estimatePromptTokens(request: ChatRequest): number {
  const { messages, members } = request
  const toolBytes = lengthOf(members.get('tools'))
  return (
    Math.ceil((messages.textBytes + toolBytes) / BYTES_PER_TOKEN) +
    TOKENS_PER_MESSAGE * messages.count +
    TOKENS_PER_IMAGE * MEDIA_KINDS.reduce((sum, kind) => sum + messages.media[kind], 0)
  )
}

/** Base64 of the slowest codec, 6 kbit/s, has 20 characters for each token of an encoder that produces 50 a second. */
const AUDIO_CHARACTERS_PER_TOKEN = 16

/**
 * The most tokens that a route's provider can count in a request's input (docs/configuration.md, "input_bound"):
 * every forwarded byte counts, and media by a bound for each kind.
 */
export function maxPromptTokens(request: ChatRequest, { config }: Route): number {
  const { messages, members, otherMembers } = request
  const bound = config.input_bound
  let bytes = messages.end - messages.start
  for (const name of PASSED_MEMBERS) bytes += lengthOf(members.get(name))
  for (const name of config.forward) bytes += lengthOf(otherMembers.get(name))
  const asText = bytes - messages.pictureBytes - messages.audioBytes
  const media = MEDIA_KINDS.reduce(
    (sum, kind) => sum + messages.media[kind] * bound[`${kind}_tokens`],
    0,
  )
  return (
    bound.base_tokens +
    Math.ceil(asText * bound.tokens_per_byte) +
    Math.ceil(messages.audioBytes / AUDIO_CHARACTERS_PER_TOKEN) +
    media
  )
}

/** The minimum size of a log probability entry in an answer, bytes: `{"token":"a","logprob":-1,"bytes":[97]}`. */
const BYTES_PER_LOG_PROBABILITY = 40

/**
 * Estimates the UTF-8 bytes of text in an answer of this many bytes that cannot be parsed. If log probabilities were
 * requested, each token comes with an entry for itself and for each alternative, which make up nearly all of the answer.
 */
export function textBytesIn({ bytes, members }: ChatRequest, answerBytes: number): number {
  if (valueOf(bytes, members.get('logprobs')) !== 'true') return answerBytes
  const alternatives = Number(valueOf(bytes, members.get('top_logprobs'))) || 0
  const entries = BYTES_PER_LOG_PROBABILITY * (1 + Math.max(0, alternatives))
  return Math.ceil((answerBytes * BYTES_PER_TOKEN) / (BYTES_PER_TOKEN + entries))
}

function valueOf(bytes: Bytes, range: Range | undefined): string {
  return range === undefined ? '' : fromUtf8(bytes.subarray(range.start, range.end)).trim()
}

function lengthOf(range: Range | undefined): number {
  return range === undefined ? 0 : range.end - range.start
}

/** The most output tokens that a request can be billed for: its own limit, else the route's, for each answer. */
export function maxCompletionTokens(
  { maxTokens, choices }: Pick<ChatRequest, 'maxTokens' | 'choices'>,
  { config }: Route,
): number {
  return Math.min((maxTokens ?? config.max_output_tokens) * choices, Number.MAX_SAFE_INTEGER)
}
