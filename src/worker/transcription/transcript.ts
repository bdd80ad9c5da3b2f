import { BrokenStream } from '../stream/broken-stream.ts'
import { isJsonObject, type JsonObject } from '../stream/json-object.ts'
import { refuseProviderError } from '../stream/provider-error.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import { UsageTally } from '../stream/usage-tally.ts'
import { numberIn, readSegments, readWords, type Segment, type Word } from './segments.ts'

/** A provider's transcript in one internal form. */
export interface Transcript {
  readonly text: string
  readonly language: string | undefined
  /** Duration of the audio as the provider reported it, in seconds; greater than 0. */
  readonly seconds: number | undefined
  readonly segments: readonly Segment[]
  readonly words: readonly Word[]
  readonly usage: TokenUsage | undefined
  /** The provider's total count of audio and text, where it reported only the total. */
  readonly totalTokens: number | undefined
}

/**
 * Reads a provider's answer.
 * @param temperature the one in the request
 * @throws BrokenStream when the answer is an error object, is malformed, or has no text
 */
export function readTranscript(answer: JsonObject, temperature: number): Transcript {
  refuseProviderError(answer)
  const { text, language } = answer
  if (typeof text !== 'string') throw new BrokenStream('malformed')
  const tally = new UsageTally()
  tally.take(answer['usage'])
  return {
    text: text.trim(),
    language: typeof language === 'string' && language !== '' ? language : undefined,
    seconds: secondsOf(answer),
    segments: readSegments(answer['segments'], temperature),
    words: readWords(answer['words']),
    usage: tally.tokens,
    totalTokens: tally.produced.totalTokens,
  }
}

/**
 * The duration from the first member in which a known server reports it: exact values before whole seconds. A value of
 * 0 counts as not reported, so that no file is free by mistake.
 */
function secondsOf(answer: JsonObject): number | undefined {
  const usage = isJsonObject(answer['usage']) ? answer['usage'] : {}
  const inMilliseconds = numberIn(answer['input_length_ms'])
  const reported = [
    numberIn(answer['duration']),
    inMilliseconds === undefined ? undefined : inMilliseconds / 1000,
    numberIn(usage['seconds']),
    numberIn(usage['prompt_audio_seconds']),
  ]
  return reported.find((seconds) => seconds !== undefined && seconds > 0)
}
