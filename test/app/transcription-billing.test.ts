import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { usageOf } from '../support/answers.ts'
import { box, recordedWebm, wav, words } from '../support/audio-samples.ts'
import { receivedForm } from '../support/received-form.ts'
import { silentFlac } from '../support/silent-flac.ts'
import type { Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'
import { formBytes, post, startTranscriptionStack } from '../support/transcription-stack.ts'

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startTranscriptionStack()
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

const answerSchema = z.looseObject({
  duration: z.number().optional(),
  service: z.looseObject({ usage: z.looseObject({ audio_seconds: z.number().optional() }) }),
})

/** Makes the provider send one answer, and returns what the client got and what the ledger says. */
async function transcribed(
  model: string,
  said: object,
  bytes: Buffer = wav(4).bytes,
  format = 'json',
) {
  const headers = { 'content-type': 'application/json' }
  await standin.script({ headers, frames: [JSON.stringify({ text: 'one two three', ...said })] })
  const parts = [
    { name: 'model', content: model },
    { name: 'file', fileName: 'a', content: bytes },
    { name: 'response_format', content: format },
    { name: 'language', content: 'en' },
  ]
  const answer = await post(stack, formBytes(parts))
  expect(answer.status).toBe(200)
  const text = await answer.text()
  const { data } = await usageOf(await stack.fetch('/v1/usage?limit=1'))
  const body = format === 'text' ? undefined : answerSchema.parse(JSON.parse(text))
  return { body, service: body?.service.usage, row: data[0] }
}

/** JSON with more values than the router reads of one answer. */
const TOO_MANY = `{"text": "one two three", "words": [${'{},'.repeat(2 * 1024 * 1024)}{}]}`

test.each([
  ['by-second', { audio_seconds: null, cost_eur: 0.04 }],
  ['by-token', { audio_seconds: null }],
])('a transcript that the router does not take is billed (%s)', async (model, billed) => {
  const headers = { 'content-type': 'application/json' }
  await standin.script({ headers, frames: [TOO_MANY] })
  const parts = [
    { name: 'model', content: model },
    { name: 'file', fileName: 'a', content: wav(4).bytes },
  ]
  const answer = await post(stack, formBytes(parts))
  expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([422, 'false'])
  expect(await answer.json()).toMatchObject({ error: { code: 'answer_too_long' } })
  const { data } = await usageOf(await stack.fetch('/v1/usage?limit=1'))
  const id = answer.headers.get('x-request-id')
  expect(data[0]).toMatchObject({ ...billed, id, receipt_id: null })
})

describe('a route priced by audio', () => {
  test.each([
    ['says so', { duration: 4_096 }],
    ['does not say', {}],
  ])('bills silence for as long as it is, where the provider %s', async (_what, said) => {
    const { bytes, seconds } = silentFlac(1_000)
    const { row } = await transcribed('by-second', said, Buffer.from(bytes))
    expect(row).toMatchObject({ cost_eur: seconds * 0.01 })
  })

  test.each<[what: string, said: object, seconds: number | null, billed: number, cost: number]>([
    ['the length as a number', { duration: 9.25 }, 9.25, 9.25, 0.1],
    ['the length as text', { duration: '9.25' }, 9.25, 9.25, 0.1],
    ['whole seconds', { usage: { type: 'duration', seconds: 10 } }, 10, 10, 0.1],
    ['no length, so that the file is measured', {}, null, 4, 0.04],
    ['a length of 0, so that the file is measured', { duration: 0 }, null, 4, 0.04],
  ])('bills %s and says what was billed', async (_what, said, seconds, billed, cost) => {
    const { service, row } = await transcribed(
      'by-second',
      said,
      wav(seconds === null ? 4 : 10).bytes,
    )
    expect(service).toEqual({ billing_unit: 'audio_second', audio_seconds: billed })
    expect(row).toMatchObject({
      billing_unit: 'audio_second',
      audio_seconds: seconds,
      cost_eur: cost,
    })
  })

  test.each(['json', 'text', 'verbose_json'])(
    'failure 31: costs the same as %s',
    async (format) => {
      const { row } = await transcribed('nova/whisper', { duration: 90.5 }, wav(91).bytes, format)
      expect(row).toMatchObject({
        billing_unit: 'audio_minute',
        audio_seconds: 90.5,
        cost_eur: 0.91,
      })
    },
  )

  test('bills no more than the file can be, and flags a provider that reports more', async () => {
    const { service, row } = await transcribed('by-second', { duration: 3600 })
    expect(service).toEqual({ billing_unit: 'audio_second', audio_seconds: 5 })
    expect(row).toMatchObject({ audio_seconds: 5, cost_eur: 0.05, usage_capped: true })
  })

  test('bills the bytes and not the header of a file that claims to be short', async () => {
    const { bytes } = wav(60)
    bytes.writeUInt32LE(0x7fffffff, 28)
    const fact = Buffer.from('fact\x04\0\0\0\x10\0\0\0', 'latin1')
    const claimed = Buffer.concat([bytes.subarray(0, 36), fact, bytes.subarray(36)])
    const { row } = await transcribed('by-second', {}, claimed)
    expect(row).toMatchObject({ audio_seconds: null, cost_eur: 0.6 })
  })

  test('states what was billed by the minute where the provider gave no duration', async () => {
    const { service, row } = await transcribed('nova/whisper', {})
    expect(service).toEqual({ billing_unit: 'audio_minute', audio_seconds: 4 })
    expect(row).toMatchObject({ audio_seconds: null, cost_eur: 0.04 })
  })

  test('bills what a browser recorded by its last sound', async () => {
    const { body, row } = await transcribed('by-second', {}, recordedWebm(25).bytes)
    expect(row).toMatchObject({ audio_seconds: null, cost_eur: 0.25 })
    expect(body?.duration).toBe(25)
  })

  test('answers and bills a file whose fragment counts four thousand million samples, and goes on', async () => {
    const samples = box('trun', words(0, 4_000_000_000, 0))
    const fragment = box('moof', box('traf', box('tfhd', words(0, 1)), samples))
    const hostile = Buffer.concat([box('ftyp', Buffer.from('M4A \0\0\0\0M4A isom')), fragment])
    const { row } = await transcribed('by-second', {}, hostile)
    expect(row).toMatchObject({ audio_seconds: null, cost_eur: 0.01 })
    expect((await transcribed('by-second', {})).row).toMatchObject({ cost_eur: 0.04 })
  })

  test('failure 31: always bills something for a file that cannot be measured', async () => {
    const bytes = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(79_996)])
    const { row } = await transcribed('by-second', {}, bytes)
    expect(row).toMatchObject({ audio_seconds: null, cost_eur: 0.1 })
  })
})

test('a route priced by request costs the same whatever the length', async () => {
  const { service, row } = await transcribed('by-request', { duration: 30 }, wav(30).bytes)
  expect(service).toEqual({ billing_unit: 'request', audio_seconds: 30 })
  expect(row).toMatchObject({ billing_unit: 'request', audio_seconds: 30, cost_eur: 0.05 })
})

describe('a route priced by tokens', () => {
  test('bills the provider’s counts and shows them', async () => {
    const usage = { type: 'tokens', input_tokens: 50, output_tokens: 7, total_tokens: 57 }
    const { service, row } = await transcribed('by-token', { usage })
    expect(service).toEqual({ billing_unit: 'token', prompt_tokens: 50, completion_tokens: 7 })
    expect(row).toMatchObject({ prompt_tokens: 50, completion_tokens: 7, cost_eur: 0.012 })
  })

  test('bills the router’s own where the provider reports none', async () => {
    const { service, row } = await transcribed('by-token', { duration: 4.5 })
    const counted = { prompt_tokens: 45, completion_tokens: 5 }
    expect(service).toEqual({ billing_unit: 'token', audio_seconds: 4.5, ...counted })
    expect(row).toMatchObject({ ...counted, cost_eur: 0.0095 })
  })

  test('bills the router’s own for the audio where the provider counts the text alone', async () => {
    const usage = { type: 'tokens', output_tokens: 7 }
    const { row } = await transcribed('by-token', { duration: 4.5, usage })
    expect(row).toMatchObject({ prompt_tokens: 45, completion_tokens: 7, cost_eur: 0.0115 })
  })

  test.each([
    ['alone', { input_tokens: 50 }],
    ['and all of the answer with it', { input_tokens: 50, output_tokens: 0, total_tokens: 50 }],
  ])(
    'bills the router’s own for the text where the provider counts the audio %s',
    async (_, counts) => {
      const { row } = await transcribed('by-token', { usage: { type: 'tokens', ...counts } })
      expect(row).toMatchObject({ prompt_tokens: 50, completion_tokens: 5, cost_eur: 0.01 })
    },
  )

  test.each([
    [48, { prompt_tokens: 45, completion_tokens: 3 }],
    [30, { prompt_tokens: 30, completion_tokens: 0 }],
    [500, { prompt_tokens: 45, completion_tokens: 5 }],
  ])(
    'bills the router’s own, but no more than the total where that is all the provider reports: %i',
    async (total, counted) => {
      const usage = { type: 'tokens', total_tokens: total }
      const { row } = await transcribed('by-token', { duration: 4.5, usage })
      expect(row).toMatchObject(counted)
    },
  )

  test('bills no tokens for silence, whose text the provider does not count either', async () => {
    const usage = { type: 'tokens', input_tokens: 50 }
    const { row } = await transcribed('by-token', { text: '', usage })
    expect(row).toMatchObject({ prompt_tokens: 50, completion_tokens: 0, cost_eur: 0.005 })
  })
})

function speechFor(model: string) {
  return formBytes([
    { name: 'file', fileName: 'a.wav', content: wav(4).bytes },
    { name: 'model', content: model },
    { name: 'prompt', content: 'Ärzte' },
  ])
}

describe('when the first route fails', () => {
  test('failure 32: the next one of the model gets the whole file', async () => {
    await standin.script({ status: 503, provider: 'nova' })
    const answer = await post(stack, speechFor('whisper'))
    const { service } = answerSchema.parse(await answer.json())
    expect(service).toMatchObject({
      requested_route: 'whisper',
      routed_model: 'vela/whisper',
      failover: true,
    })
    const { fields, files } = await receivedForm(standin)
    expect(fields).toMatchObject({ model: 'upstream-whisper', prompt: 'Ärzte' })
    expect(files[0]?.bytes.equals(wav(4).bytes)).toBe(true)
    const { data } = await usageOf(await stack.fetch('/v1/usage?limit=1'))
    expect(data[0]).toMatchObject({ model: 'vela/whisper', failover: true })
  })

  test('and rests, the one that is asked in its place still counts as failover', async () => {
    await standin.script({ status: 503, provider: 'nova', headers: { 'retry-after': '30' } })
    const bodies = []
    for (let turn = 0; turn < 2; turn++) {
      const answer = await post(stack, speechFor('rests'))
      bodies.push(answerSchema.parse(await answer.json()).service)
    }
    const failover = { requested_route: 'rests', routed_model: 'vela/rests', failover: true }
    expect(bodies).toMatchObject([failover, failover])
    const asked = (await standin.exchanges()).map(({ provider }) => provider)
    expect(asked).toEqual(['nova', 'vela', 'vela'])
    const { data } = await usageOf(await stack.fetch('/v1/usage?limit=2'))
    expect(data.map(({ failover: noted }) => noted)).toEqual([true, true])
  })

  test('and is pinned, no other is asked', async () => {
    await standin.script({ status: 503, provider: 'nova', times: 2 })
    const answer = await post(stack, speechFor('eu/nova/whisper'))
    expect(answer.status).toBe(502)
    const asked = (await standin.exchanges()).map(({ provider }) => provider)
    expect(new Set(asked)).toEqual(new Set(['nova']))
  })
})
