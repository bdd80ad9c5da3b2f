import { describe, expect, it } from 'vitest'
import { concatBytes, copyBytes } from '../../../src/protocol/bytes.ts'
import { parseForm } from '../../../src/worker/transcription/form.ts'
import { providerForm } from '../../../src/worker/transcription/provider-form.ts'
import { checkForm, type CheckedForm } from '../../../src/worker/transcription/request.ts'
import { m4a } from '../../support/audio-samples.ts'
import { catalogueOf, unitPrice } from '../../support/router-config.ts'

const CATALOGUE = catalogueOf({
  'nova/whisper': { type: 'transcription', pricing: unitPrice('request', 1) },
})
const BYTES = copyBytes(m4a(2).bytes)
const PLAIN = checkForm({
  file: { bytes: BYTES, name: 'Divorce, call 3.m4a', type: undefined },
  fields: new Map([['model', 'whisper']]),
  dropped: [],
})

function sent(changes: Partial<CheckedForm>) {
  const [route] = CATALOGUE.routes
  if (route === undefined) throw new Error('no route')
  const { contentType, pieces } = providerForm({ ...PLAIN, ...changes }, route, 'bound')
  return { contentType, pieces, form: parseForm(contentType, concatBytes(...pieces)) }
}

describe('the form for a provider', () => {
  it('has the model as the provider calls it, and the file', () => {
    const { contentType, form } = sent({})
    expect(contentType).toBe('multipart/form-data; boundary=bound')
    expect(Object.fromEntries(form.fields)).toEqual({
      model: 'upstream-whisper',
      response_format: 'json',
    })
    expect(form.file).toEqual({ bytes: BYTES, name: 'audio.m4a', type: 'audio/m4a' })
  })

  it('carries the hints byte for byte and nothing that is for the router', () => {
    const prompt = 'Ä "quoted"\r\n--boun\r\n'
    const hints = { prompt, language: 'en', temperature: '0.20', format: 'verbose_json' as const }
    const { form } = sent({ ...hints, region: 'eu', provider: 'nova' })
    expect(Object.fromEntries(form.fields)).toEqual({
      model: 'upstream-whisper',
      response_format: 'verbose_json',
      prompt,
      language: 'en',
      temperature: '0.20',
    })
  })

  it('asks for JSON where the caller wants text, so that the length comes along', () => {
    expect(sent({ format: 'text' }).form.fields.get('response_format')).toBe('json')
  })

  it('does not copy the file and does not tell its name', () => {
    const { pieces } = sent({})
    expect(pieces[1]).toBe(PLAIN.file.bytes)
    expect(Buffer.from(concatBytes(...pieces)).includes('Divorce')).toBe(false)
  })
})
