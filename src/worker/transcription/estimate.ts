import { estimateCompletionTokens } from '../provider/estimate.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { TranscriptionRequest } from './request.ts'

/** The router's own figures for audio (docs/transcription.md, "Billing"). */

/** The lowest bit rate of any accepted codec, which is Opus. */
const LOWEST_BITS_PER_SECOND = 6_000
/** A common bit rate of compressed speech. */
const USUAL_BITS_PER_SECOND = 64_000

/** An encoder's rate, which no known model exceeds, and the usual one. */
const MAX_TOKENS_PER_SECOND = 50
const USUAL_TOKENS_PER_SECOND = 10

/** The longest that a file nobody can measure may be. */
export function longestSeconds(bytes: number): number {
  return (bytes * 8) / LOWEST_BITS_PER_SECOND
}

/** What a file is billed for that neither the provider nor the router could measure. */
export function usualSeconds(bytes: number): number {
  return (bytes * 8) / USUAL_BITS_PER_SECOND
}

/** Prompt tokens to reserve for. */
export function mostPromptTokens(ask: TranscriptionRequest, seconds: number): number {
  return Math.ceil(seconds * MAX_TOKENS_PER_SECOND) + promptTextTokens(ask)
}

/** Counts to bill where the route settles on tokens and the provider told none. */
export function usualUsage(ask: TranscriptionRequest, seconds: number, text: string): TokenUsage {
  return {
    promptTokens: Math.ceil(seconds * USUAL_TOKENS_PER_SECOND) + promptTextTokens(ask),
    completionTokens: textTokens(text),
    cachedTokens: 0,
    cacheWriteTokens: 0,
  }
}

function promptTextTokens({ prompt = '' }: TranscriptionRequest): number {
  return textTokens(prompt)
}

function textTokens(text: string): number {
  return estimateCompletionTokens(new TextEncoder().encode(text).length)
}
