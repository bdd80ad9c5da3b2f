import { describe, expect, it } from 'vitest'
import {
  planTranscription,
  type TranscriptionRoutingCriteria,
} from '../../../src/worker/routing/plan-transcription.ts'
import { refusalOf } from '../../support/refusal.ts'
import { catalogueOf, unitPrice } from '../../support/router-config.ts'

const AUDIO = { type: 'transcription', pricing: unitPrice('audio_minute', 0.01) }

const CATALOGUE = catalogueOf(
  {
    'eu/nova/whisper': { ...AUDIO, audio: { max_bytes: 100, mime_types: ['audio/wav'] } },
    'us/nova/whisper': { ...AUDIO, audio: { mime_types: ['audio/WAV', 'audio/m4a'] } },
    'eu/orbit/whisper': { ...AUDIO, audio: { max_bytes: 1000 } },
    'nova/small': { ...AUDIO, audio: { max_bytes: 10, mime_types: ['audio/wav'] } },
    'nova/free': { type: 'transcription', pricing: undefined },
    'nova/glm': {},
  },
  { auto: ['glm'] },
)

function plan(criteria: Partial<TranscriptionRoutingCriteria> & { model: string }) {
  const whole = { mimeType: 'audio/wav', bytes: 50, ...criteria }
  return planTranscription(CATALOGUE, whole, { order: (routes) => routes })
}

function idsOf(criteria: Parameters<typeof plan>[0]): string[] {
  return plan(criteria).attempts.map(({ route }) => route.id)
}

const ALL = ['eu/nova/whisper', 'us/nova/whisper', 'orbit/whisper']

describe('a transcription plan', () => {
  it.each([
    ['whisper', {}, ALL],
    ['eu/whisper', {}, ['eu/nova/whisper', 'orbit/whisper']],
    ['nova/whisper', {}, ['eu/nova/whisper', 'us/nova/whisper']],
    ['us/nova/whisper', {}, ['us/nova/whisper']],
    ['whisper', { region: 'eu' }, ['eu/nova/whisper', 'orbit/whisper']],
    ['whisper', { provider: 'nova' }, ['eu/nova/whisper', 'us/nova/whisper']],
    ['whisper', { region: 'eu', provider: 'orbit' }, ['orbit/whisper']],
    ['eu/whisper', { provider: 'nova' }, ['eu/nova/whisper']],
    ['orbit/whisper', { region: 'eu' }, ['orbit/whisper']],
  ])('takes %s with the hints %j', (model, hints, ids) => {
    expect(idsOf({ model, ...hints })).toEqual(ids)
  })

  it('keeps the canonical selector of the model whatever the hints', () => {
    expect(plan({ model: 'whisper', region: 'eu' }).requestedRoute).toBe('whisper')
    expect(plan({ model: 'eu/orbit/whisper' }).requestedRoute).toBe('orbit/whisper')
  })

  it('flags every attempt but the first eligible one', () => {
    expect(plan({ model: 'whisper' }).attempts.map(({ failover }) => failover)).toEqual([
      false,
      true,
      true,
    ])
    expect(plan({ model: 'whisper', bytes: 500 }).attempts[0]).toMatchObject({
      failover: false,
      entry: 0,
      effort: undefined,
      route: { id: 'us/nova/whisper' },
    })
  })

  it('leaves out routes whose own limits exclude the file', () => {
    expect(idsOf({ model: 'whisper', mimeType: 'audio/flac' })).toEqual(['orbit/whisper'])
    expect(idsOf({ model: 'whisper', bytes: 100 })).toEqual(ALL)
    expect(idsOf({ model: 'whisper', bytes: 101 })).toEqual(['us/nova/whisper', 'orbit/whisper'])
  })

  it.each(['audio/m4a', 'audio/x-m4a', 'audio/mp4'])(
    'takes %s for a route that accepts its container',
    (mimeType) => {
      expect(idsOf({ model: 'nova/whisper', mimeType })).toEqual(['us/nova/whisper'])
    },
  )
})

const noRoute = (hint: string) => `The requested model has no route with this ${hint}.`

describe('a transcription plan refuses', () => {
  const unknown = 'The model is unknown or not a transcription model.'

  it.each([
    ['an unknown model', { model: 'gpt' }, unknown, 'model'],
    ['a chat model', { model: 'glm' }, unknown, 'model'],
    ['auto', { model: 'auto' }, unknown, 'model'],
    ['an unknown region', { model: 'whisper', region: 'ap' }, noRoute('region'), 'region'],
    [
      'another region than the pin',
      { model: 'eu/whisper', region: 'us' },
      noRoute('region'),
      'region',
    ],
    [
      'another provider than the pin',
      { model: 'eu/nova/whisper', provider: 'orbit' },
      noRoute('provider'),
      'provider',
    ],
    [
      'hints that no route meets together',
      { model: 'whisper', region: 'us', provider: 'orbit' },
      noRoute('provider'),
      'provider',
    ],
  ])('%s', (_, criteria, message, param) => {
    expect(refusalOf(() => plan(criteria))).toEqual({ code: 'invalid_model', message, param })
  })

  it('a type that no route accepts, even when the file is too large too', () => {
    expect(refusalOf(() => plan({ model: 'small', mimeType: 'audio/ogg', bytes: 99 }))).toEqual({
      code: 'unsupported_file_type',
      message: 'No route of the requested model accepts this audio format.',
      param: 'file',
    })
  })

  it('a file that is larger than any route accepts', () => {
    expect(refusalOf(() => plan({ model: 'small', bytes: 11 }))).toEqual({
      code: 'file_too_large',
      message: 'The file is larger than any route of the requested model accepts.',
      param: 'file',
    })
  })

  it('a model without a price', () => {
    expect(refusalOf(() => plan({ model: 'free' }))).toEqual({
      code: 'route_not_priced',
      message: 'No route of the requested model has a price.',
      param: undefined,
    })
  })
})
