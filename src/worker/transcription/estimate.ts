import { utf8 } from '../../protocol/bytes.ts'
import { estimateTextTokens } from '../stream/estimate-text.ts'
import type { Route } from '../provider/route.ts'
import type { AudioBound } from '../stream/cap-tokens.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { TranscriptionRequest } from './request.ts'

/** The router's own figures for audio (docs/transcription.md, "Billing"). */

/** A common bit rate of compressed speech, bits per second. */
const TYPICAL_BITS_PER_SECOND = 64_000

/** The maximum token rate of an audio encoder, which no known model exceeds, and a typical one. */
const MAX_TOKENS_PER_SECOND = 50
const TYPICAL_TOKENS_PER_SECOND = 10

/** Seconds billed for a file whose duration neither the provider nor the router could measure. */
export function typicalSeconds(bytes: number): number {
  return (bytes * 8) / TYPICAL_BITS_PER_SECOND
}

/** The maximum usage of a request on a route: the amount reserved for it, and the most it can be billed. */
export function maxUsage(parsed: TranscriptionRequest, { config }: Route): AudioBound {
  const audioSeconds = parsed.longestSeconds
  const { tokens_per_byte: perByte, base_tokens: base } = config.input_bound
  const promptBytes = utf8(parsed.prompt ?? '').length
  return {
    promptTokens:
      base + Math.ceil(audioSeconds * MAX_TOKENS_PER_SECOND) + Math.ceil(promptBytes * perByte),
    completionTokens: config.max_output_tokens,
    audioSeconds,
  }
}

/** Token counts to bill when the route is priced by tokens and the provider reported none. */
export function typicalUsage(
  parsed: TranscriptionRequest,
  seconds: number,
  textBytes: number,
): TokenUsage {
  return {
    promptTokens: Math.ceil(seconds * TYPICAL_TOKENS_PER_SECOND) + promptTextTokens(parsed),
    completionTokens: estimateTextTokens(textBytes),
    cachedTokens: 0,
    cacheWriteTokens: 0,
  }
}

function promptTextTokens({ prompt = '' }: TranscriptionRequest): number {
  return estimateTextTokens(utf8(prompt).length)
}
