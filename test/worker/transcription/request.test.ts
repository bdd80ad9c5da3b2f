import { describe, expect, it } from 'vitest'
import { copyBytes, utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import {
  FIELDS,
  type FieldName,
  type UploadedFile,
} from '../../../src/worker/transcription/form.ts'
import { checkForm } from '../../../src/worker/transcription/request.ts'
import { m4a, mp3, recordedWebm, wav } from '../../support/audio-samples.ts'
import { refusalOf } from '../../support/refusal.ts'

const WAV = copyBytes(wav(1).bytes)

type Fields = Partial<Record<FieldName, string>>

function parse(fields: Fields = {}, file: Partial<UploadedFile> | null = {}) {
  const whole = { bytes: WAV, name: 'a.wav', type: 'audio/wav', ...file }
  const given: Fields = { model: 'whisper', ...fields }
  const all = FIELDS.flatMap((name): [FieldName, string][] => {
    const value = given[name]
    return value === undefined ? [] : [[name, value]]
  })
  return checkForm({
    file: file === null ? undefined : whole,
    fields: new Map(all),
    dropped: [],
  })
}

function refused(...args: Parameters<typeof parse>) {
  const { code, message, param } = refusalOf(() => parse(...args))
  return [code, param, message]
}

function typed(bytes: Bytes, type: string | undefined, name = 'upload') {
  return parse({}, { bytes, type, name }).audio.type
}

describe('a transcription request', () => {
  it('needs no more than a file and a model', () => {
    expect(parse()).toMatchObject({
      model: 'whisper',
      format: 'json',
      audio: { type: 'audio/wav', container: 'wav' },
      language: undefined,
      temperature: undefined,
    })
  })

  it('takes empty fields for absent ones', () => {
    const empty = { region: '', provider: '', response_format: '', language: '', temperature: '' }
    expect(parse(empty)).toEqual(parse())
  })

  it.each(['0.20', '0', '2', '.5', '002.000', '1e-05', '1E0', '0.1e+1'])(
    'keeps the temperature %s as it is written',
    (text) => {
      expect(parse({ temperature: text }).temperature).toBe(text)
    },
  )

  it.each(['1.', '.', '-1', '1e', 'e0', '1e1', '1e999', '2.1', ' 1', '1.0.0', '\u0661'])(
    'is refused with the temperature %j',
    (text) => {
      const message = 'The field "temperature" must be a number from 0 to 2.'
      expect(refused({ temperature: text })).toEqual([
        'invalid_request_error',
        'temperature',
        message,
      ])
    },
  )

  it('is refused, a hundred times over, with a temperature as long as a field may be', () => {
    const digits = `${'1'.repeat(64 * 1024 - 1)}x`
    for (let turn = 0; turn < 100; turn++) {
      expect(refused({ temperature: digits })[1]).toBe('temperature')
    }
  })

  const FORMATS = 'The response format must be one of json, text, verbose_json.'
  const NEEDED = 'It is required with the response format "verbose_json".'
  it.each<[what: string, fields: Fields, refusal: unknown[]]>([
    ['without a model', { model: '' }, ['missing_field', 'model', 'The field "model" is missing.']],
    [
      'for verbose_json without a language',
      { response_format: 'verbose_json' },
      ['missing_field', 'language', `The field "language" is missing. ${NEEDED}`],
    ],
    [
      'for a format there is not',
      { response_format: 'srt' },
      ['invalid_response_format', 'response_format', FORMATS],
    ],
    [
      'with the name of a language',
      { language: 'english' },
      [
        'invalid_request_error',
        'language',
        'The field "language" must be an ISO 639-1 code such as "en".',
      ],
    ],
    [
      'with a temperature that is no number',
      { temperature: 'hot' },
      [
        'invalid_request_error',
        'temperature',
        'The field "temperature" must be a number from 0 to 2.',
      ],
    ],
    [
      'for a stream',
      { stream: 'true' },
      [
        'invalid_request_error',
        'stream',
        'The field "stream" cannot be true: transcriptions are not streamed.',
      ],
    ],
    [
      'with failover entries',
      { failover: '["a"]' },
      [
        'invalid_request_error',
        'failover',
        'The field "failover" is not accepted: the router itself moves on within the model.',
      ],
    ],
  ])('is refused %s', (_what, fields, refusal) => {
    expect(refused(fields)).toEqual(refusal)
  })

  it('is refused without a file, with an empty one, and with one over 25 MiB', () => {
    expect(refused({}, null)).toEqual(['missing_field', 'file', 'The field "file" is missing.'])
    const empty = { bytes: new Uint8Array() }
    expect(refused({}, empty)).toEqual(['invalid_file', 'file', 'The file is empty.'])
    const large = { bytes: new Uint8Array(25 * 1024 * 1024 + 1) }
    const message = 'The file is larger than 25 MiB.'
    expect(refused({}, large)).toEqual(['upload_too_large', 'file', message])
  })
})

describe('the type of a file', () => {
  const MP3 = copyBytes(mp3(3).bytes)
  const M4A = copyBytes(m4a(1).bytes)
  const WEBM = copyBytes(recordedWebm(1).bytes)

  it.each(['audio/flac', 'audio/m4a', 'audio/mp4', 'audio/x-m4a', 'audio/webm'])(
    'is taken as declared where it is one of the eight: %s',
    (type) => expect(typed(M4A, type)).toBe(type),
  )

  it.each([undefined, 'application/octet-stream', 'audio/x-wav', 'audio/wave', 'audio/vnd.wave'])(
    'is told by the bytes where %s is declared',
    (type) => expect(typed(WAV, type)).toBe('audio/wav'),
  )

  it('is found behind the names that systems have for it', () => {
    expect(typed(MP3, 'audio/mp3')).toBe('audio/mpeg')
    expect(typed(WEBM, 'video/webm')).toBe('audio/webm')
    expect(typed(M4A, 'video/mp4')).toBe('audio/mp4')
    expect(typed(M4A, undefined, 'Voice Memo.M4A')).toBe('audio/m4a')
    expect(typed(utf8('ID3\x04\0'), 'audio/x-mpeg')).toBe('audio/mpeg')
  })

  it.each<[what: string, bytes: Bytes, type: string]>([
    ['text', utf8('RIFF, he said, and left.'), 'audio/wav'],
    ['UTF-16 text', Uint8Array.from([0xff, 0xfe, 0x48, 0, 0x69, 0]), 'audio/mpeg'],
    ['text that begins with ID3', utf8('ID3 is a tag.'), 'audio/mpeg'],
    ['bare AAC', Uint8Array.from([0xff, 0xf1, 0x50, 0x80, 0, 0]), 'audio/aac'],
    ['a photo', utf8('\0\0\0\x18ftypheic'), 'audio/mp4'],
    ['a picture', utf8('\x89PNG\r\n\x1a\n'), 'application/octet-stream'],
    ['sound that is called text', WAV, 'text/plain'],
  ])('is unsupported: %s', (_what, bytes, type) => {
    const accepted =
      'audio/flac, audio/m4a, audio/mp4, audio/mpeg, audio/ogg, audio/wav, audio/webm, audio/x-m4a'
    expect(refused({}, { bytes, type, name: 'a.wav' })).toEqual([
      'unsupported_file_type',
      'file',
      `The file is not audio of an accepted type: ${accepted}.`,
    ])
  })
})
