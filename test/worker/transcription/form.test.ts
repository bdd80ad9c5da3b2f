import { describe, expect, it } from 'vitest'
import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { parseForm } from '../../../src/worker/transcription/form.ts'
import { refusalOf } from '../../support/refusal.ts'

const TYPE = 'multipart/form-data; boundary=bound'

function part(disposition: string, content: string, ...headers: readonly string[]): string {
  const lines = [`Content-Disposition: form-data; ${disposition}`, ...headers]
  return `--bound\r\n${lines.join('\r\n')}\r\n\r\n${content}\r\n`
}

const FILE = part(
  'name="file"; filename="a.wav"',
  'sound\r\n--boun',
  'Content-Type: Audio/X-WAV; a=b',
)
const MODEL = part('name="model"', 'whisper')
const END = '--bound--\r\n'

function parsed(body: string | Bytes, type = TYPE) {
  const { file, fields } = parseForm(type, typeof body === 'string' ? utf8(body) : body)
  return {
    file: file && { ...file, bytes: Buffer.from(file.bytes).toString() },
    fields: Object.fromEntries(fields),
  }
}

const WHOLE = {
  file: { bytes: 'sound\r\n--boun', name: 'a.wav', type: 'audio/x-wav' },
  fields: { model: 'whisper' },
}

function refused(body: string, type = TYPE) {
  const { code, message, param } = refusalOf(() => parsed(body, type))
  return { code, message, param }
}

const BROKEN = {
  code: 'invalid_multipart',
  message: 'The multipart body is malformed or ends too early.',
  param: undefined,
}

function twice(name: string) {
  const message = `The form has the part "${name}" twice.`
  return { code: 'invalid_multipart', message, param: name }
}

describe('a form', () => {
  it('may have its parts in any order', () => {
    expect(parsed(FILE + MODEL + END)).toEqual(WHOLE)
    expect(parsed(MODEL + FILE + END)).toEqual(WHOLE)
  })

  it('may have a preamble, an epilogue, a quoted boundary, or no line break at its end', () => {
    expect(parsed(`before\r\n${FILE}${MODEL}${END}after`)).toEqual(WHOLE)
    expect(parsed(FILE + MODEL + END, 'multipart/form-data; boundary="bound"')).toEqual(WHOLE)
    expect(parsed(FILE + MODEL + END.trimEnd())).toEqual(WHOLE)
  })

  it('may have unknown parts, more than once, as fields or as files', () => {
    const other = part('name="timestamp_granularities[]"', 'segment')
    const upload = part('name="picture"; filename="x.png"', 'pixels')
    const body = other + MODEL + other + upload + FILE + END
    expect(parsed(body)).toEqual(WHOLE)
    const { dropped } = parseForm(TYPE, utf8(body))
    expect(new Set(dropped)).toEqual(new Set(['timestamp_granularities[]', 'picture']))
  })

  it.each(['Attestation', 'attestation[min]', 'attestation[providers][]', 'min_attestation'])(
    'has no part %j, which may be meant as "attestation"',
    (name) => {
      expect(refused(part(`name="${name}"`, 'hardware') + MODEL + FILE + END)).toEqual({
        code: 'invalid_attestation_constraint',
        message: `"${name}" is unknown here and may be meant as "attestation". What the provider must meet is given there, under exactly this name (docs/api.md).`,
        param: 'attestation',
      })
    },
  )

  it('has a failover list, which is refused later, also where clients send it entry by entry', () => {
    const entries = part('name="failover[]"', 'a') + part('name="failover[]"', 'b')
    expect(parsed(entries + MODEL + FILE + END).fields).toEqual({ model: 'whisper', failover: 'b' })
  })

  it('has no declared type where the file names none', () => {
    const file = part('name="file"; filename="a"', 'sound')
    expect(parsed(file + END).file).toEqual({ bytes: 'sound', name: 'a', type: undefined })
  })

  it.each([
    ['in any script, as UTF-8', 'filename="世界 ünï🎵.wav"', '世界 ünï🎵.wav'],
    ['as RFC 8187 has it', "filename*=UTF-8''%E4%B8%96%E7%95%8C.wav", '世界.wav'],
    ['both ways, of which the longer form counts', `filename="x"; filename*=utf-8'en'%C3%BC`, 'ü'],
    ['with quotes and a semicolon', 'filename="a;\\"b\\".wav"', 'a;"b".wav'],
    ['empty', 'filename=""', ''],
  ])('may name its file %s', (_how, given, name) => {
    const file = part(`name="file"; ${given}`, 'sound')
    expect(parsed(MODEL + file + END)).toMatchObject({ file: { bytes: 'sound', name } })
  })

  it('may have text in any script', () => {
    expect(parsed(part('name="prompt"', '世界 🎵') + END).fields).toEqual({ prompt: '世界 🎵' })
  })

  it('has its text byte for byte, also a mark of byte order', () => {
    expect(parsed(part('name="prompt"', '\ufeff a\r\n ') + END).fields).toEqual({
      prompt: '\ufeff a\r\n ',
    })
  })

  it('is refused with text that is no UTF-8, and says of which field', () => {
    const body = Buffer.from(part('name="prompt"', 'f\u00fcr') + END, 'latin1')
    const { code, message, param } = refusalOf(() => parseForm(TYPE, new Uint8Array(body)))
    expect({ code, message, param }).toEqual({
      code: 'invalid_multipart',
      message: 'The field "prompt" is not UTF-8.',
      param: 'prompt',
    })
  })

  it('gives the file as a view of the body it came in', () => {
    const body = utf8(MODEL + FILE + END)
    expect(parseForm(TYPE, body).file?.bytes.buffer).toBe(body.buffer)
  })

  it('is refused when a known part comes twice', () => {
    expect(refused(MODEL + FILE + MODEL + END)).toEqual(twice('model'))
    expect(refused(FILE + FILE + END)).toEqual(twice('file'))
  })

  it('is refused wherever it is cut', () => {
    const body = FILE + MODEL + END.trimEnd()
    for (let length = 0; length < body.length; length++) {
      expect(refused(body.slice(0, length))).toEqual(BROKEN)
    }
  })

  it.each([
    ['another boundary', `--other\r\n${MODEL}`],
    ['no part name', part('filename="x"', 'x') + END],
    ['a malformed header', `--bound\r\nno header; at all\r\n\r\nx\r\n${END}`],
    ['a file name that cannot be decoded', part('name="file"; filename*=UTF-8\'\'%zz', 'x') + END],
    ['a field of 65 KiB', part('name="prompt"', 'x'.repeat(65 * 1024)) + END],
    ['101 parts', part('name="x"', '').repeat(101) + END],
  ])('is refused with %s', (_what, body) => {
    expect(refused(body)).toEqual(BROKEN)
  })

  it('is refused with headers that are no UTF-8, and says so', () => {
    const body = Buffer.from(part('name="file"; filename="\u00fc.wav"', 'x') + END, 'latin1')
    const { code, message } = refusalOf(() => parseForm(TYPE, new Uint8Array(body)))
    expect({ code, message }).toEqual({
      code: 'invalid_multipart',
      message: 'The headers of a part are not UTF-8.',
    })
  })

  it('is refused without a usable boundary', () => {
    expect(refused(MODEL + END, 'multipart/form-data; boundary').code).toBe('invalid_content_type')
  })
})
