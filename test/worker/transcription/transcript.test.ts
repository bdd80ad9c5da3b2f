import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import { decodeAnswer, parseJsonObject } from '../../../src/worker/stream/json-object.ts'
import { readTranscript } from '../../../src/worker/transcription/transcript.ts'

function read(answer: unknown, temperature = 0) {
  return readTranscript(parseJsonObject(JSON.stringify(answer)), temperature)
}

function fault(body: string): unknown {
  try {
    readTranscript(parseJsonObject(body), 0)
    return undefined
  } catch (error) {
    return error instanceof BrokenStream ? error.reason : error
  }
}

describe('the length of the audio', () => {
  it.each<[server: string, answer: object, seconds: number | undefined]>([
    ['vLLM, json', { usage: { type: 'duration', seconds: 5 } }, 5],
    ['vLLM, verbose_json', { duration: '4.25' }, 4.25],
    ['SGLang', { duration: 4.25, usage: { type: 'duration', seconds: 5 } }, 4.25],
    ['DeepInfra', { input_length_ms: 4250 }, 4.25],
    ['Mistral', { usage: { prompt_audio_seconds: 5, prompt_tokens: 3 } }, 5],
    ['speaches', { usage: null, logprobs: null }, undefined],
    ['a server that tells 0', { duration: 0 }, undefined],
    ['a server that tells nonsense', { duration: 'long' }, undefined],
  ])('is read where %s puts it', (_server, answer, seconds) => {
    expect(read({ text: 'hi', ...answer }).seconds).toBe(seconds)
  })
})

describe('token usage', () => {
  it('is read in both spellings', () => {
    const counted = { promptTokens: 30, completionTokens: 4, cachedTokens: 0, cacheWriteTokens: 0 }
    const openai = { type: 'tokens', input_tokens: 30, output_tokens: 4, total_tokens: 34 }
    expect(read({ text: '', usage: openai }).usage).toEqual(counted)
    const mistral = { prompt_tokens: 30, completion_tokens: 4 }
    expect(read({ text: '', usage: mistral }).usage).toEqual(counted)
    expect(read({ text: '', usage: { type: 'duration', seconds: 4 } }).usage).toBeUndefined()
  })
})

describe('segments', () => {
  it('with four fields get fillers, numbers for times, order and new ids', () => {
    const { segments } = read(
      {
        text: 'one two',
        segments: [
          { id: 7, start: '1.5', end: '1.25', text: ' two' },
          { id: 3, start: 0, end: 1.5, text: ' one' },
        ],
      },
      0.4,
    )
    const fillers = {
      seek: 0,
      tokens: [],
      temperature: 0.4,
      avg_logprob: 0,
      compression_ratio: 1,
      no_speech_prob: 0,
    }
    expect(segments).toEqual([
      { id: 0, start: 0, end: 1.5, text: ' one', ...fillers },
      { id: 1, start: 1.5, end: 1.5, text: ' two', ...fillers },
    ])
  })

  it('with all ten fields stay as they are, without what else a server adds', () => {
    const segment = {
      id: 0,
      seek: 100,
      start: 0.5,
      end: 1,
      text: 'one',
      tokens: [50364, 1],
      temperature: 0.2,
      avg_logprob: -0.25,
      compression_ratio: 1.5,
      no_speech_prob: 0.01,
    }
    const { segments } = read({ text: 'one', segments: [{ ...segment, words: [], speaker: 'A' }] })
    expect(segments).toEqual([segment])
  })

  it('may have null for a probability, as vLLM sends it', () => {
    const segment = { start: 0, end: 1, text: 'one', no_speech_prob: null, tokens: null }
    expect(read({ text: 'one', segments: [segment] }).segments[0]).toMatchObject({
      no_speech_prob: 0,
      tokens: [],
    })
  })

  it('and words may be null', () => {
    expect(read({ text: 'one', segments: null, words: null })).toMatchObject({
      segments: [],
      words: [],
    })
    const word = { word: 'one', start: 0, end: 0.5 }
    expect(read({ text: 'one', words: [{ ...word, probability: 1 }] }).words).toEqual([word])
  })
})

describe('an answer', () => {
  it('is trimmed and may begin with a byte order mark', () => {
    expect(
      readTranscript(parseJsonObject(decodeAnswer(utf8('\uFEFF {"text": " hi\\n"}'))), 0).text,
    ).toBe('hi')
  })

  it.each([
    ['an error object', '{"error": {"message": "no"}}', 'error_event'],
    ['an error string', '{"error": "failed to read audio"}', 'error_event'],
    ['the flat error of older servers', '{"object": "error", "message": "no"}', 'error_event'],
    ['a rate limit', '{"error": {"code": 429}}', 'rate_limited'],
    ['no text', '{"detail": "no"}', 'malformed'],
    ['text that is none', '{"text": 5}', 'malformed'],
    ['segments without times', '{"text": "", "segments": [{"text": ""}]}', 'malformed'],
    ['plain text', 'hello', 'malformed'],
    ['nothing', '', 'malformed'],
  ])('is broken: %s', (_what, body, reason) => expect(fault(body)).toBe(reason))
})
