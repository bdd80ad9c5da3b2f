import { BrokenStream } from '../stream/broken-stream.ts'
import { optionalObjects, type JsonObject } from '../stream/json-object.ts'

/** A segment with all ten fields that clients of the common format insist on. */
export interface Segment {
  readonly id: number
  readonly seek: number
  readonly start: number
  readonly end: number
  readonly text: string
  readonly tokens: readonly number[]
  readonly temperature: number
  readonly avg_logprob: number
  readonly compression_ratio: number
  readonly no_speech_prob: number
}

export interface Word {
  readonly word: string
  readonly start: number
  readonly end: number
}

/**
 * Defaults for fields that a provider did not send (docs/transcription.md, "Segments"): neutral values, which clients do not
 * interpret as bad quality.
 */
const FILLERS = { seek: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 }

/**
 * A provider's segments in one shape: times as numbers and in order, ids renumbered, defaults where fields are missing.
 * @param temperature the one in the request
 * @throws BrokenStream `malformed` when a segment has no text or no times
 */
export function readSegments(value: unknown, temperature: number): readonly Segment[] {
  return optionalObjects(value)
    .map((segment) => ({
      seek: numberIn(segment['seek']) ?? FILLERS.seek,
      ...timesOf(segment),
      text: textOf(segment['text']),
      tokens: tokensOf(segment['tokens']),
      temperature: numberIn(segment['temperature']) ?? temperature,
      avg_logprob: numberIn(segment['avg_logprob']) ?? FILLERS.avg_logprob,
      compression_ratio: numberIn(segment['compression_ratio']) ?? FILLERS.compression_ratio,
      no_speech_prob: numberIn(segment['no_speech_prob']) ?? FILLERS.no_speech_prob,
    }))
    .toSorted((left, right) => left.start - right.start)
    .map((segment, id) => ({ id, ...segment }))
}

/**
 * A provider's words in OpenAI's format.
 * @throws BrokenStream `malformed` when a word has no text or no times
 */
export function readWords(value: unknown): readonly Word[] {
  return optionalObjects(value).map((word) => ({ word: textOf(word['word']), ...timesOf(word) }))
}

/** A number, or the text of one, as some servers send it. */
export function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

function timesOf(item: JsonObject): { readonly start: number; readonly end: number } {
  const start = numberIn(item['start'])
  const end = numberIn(item['end'])
  if (start === undefined || end === undefined) throw new BrokenStream('malformed')
  return { start, end: Math.max(start, end) }
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new BrokenStream('malformed')
  return value
}

function tokensOf(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.filter((token) => Number.isSafeInteger(token)) : []
}
