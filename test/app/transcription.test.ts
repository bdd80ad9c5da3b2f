import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createOpenAI } from '@ai-sdk/openai'
import { transcribe } from 'ai'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { TRANSCRIPT_TEXT } from '../../src/standin/answers.ts'
import { usageOf } from '../support/answers.ts'
import { everySample, m4a, mp3, recordedWebm, wav } from '../support/audio-samples.ts'
import { claimsOf } from '../support/receipt-claims.ts'
import { useSdkSession } from '../support/sdk-session.ts'
import { standinOf, type Standin } from '../support/standin.ts'
import { receivedForm } from '../support/received-form.ts'

const session = useSdkSession()
const MODEL = 'whisper-large-v3'

let standin: Standin
let files: string

beforeAll(() => {
  standin = standinOf(session().stack)
  files = mkdtempSync(join(tmpdir(), 'cmr-audio-'))
})
afterAll(() => rmSync(files, { recursive: true }))
beforeEach(() => standin.reset())

function client(): OpenAI {
  const { baseURL, apiKey, fetch } = session()
  return new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 })
}

function savedFile(): string {
  const path = join(files, 'meeting.wav')
  writeFileSync(path, wav(4.2).bytes)
  return path
}

/** Three ways in which people hand a file to the library. */
const FILES = {
  'a file stream': () => createReadStream(savedFile()),
  'a Blob': () => new Blob([wav(4.2).bytes]),
  'a typed File': () => new File([wav(4.2).bytes], 'a.wav', { type: 'audio/wav' }),
  'bytes under a name': () => toFile(wav(4.2).bytes, 'a.wav'),
}

describe('the openai package', () => {
  describe.each(Object.entries(FILES))('with %s', (_what, makeFile) => {
    const ask = async () => {
      const given = await makeFile()
      const file = given instanceof Blob && !(given instanceof File) ? await toFile(given) : given
      return { file, model: MODEL, language: 'en' }
    }

    test('gets JSON', async () => {
      const answer = await client().audio.transcriptions.create(await ask())
      expect(answer).toMatchObject({
        text: TRANSCRIPT_TEXT,
        language: 'english',
        duration: 4.2,
        service: {
          requested_route: MODEL,
          routed_model: `standin/${MODEL}`,
          failover: false,
          usage: { billing_unit: 'audio_minute', audio_seconds: 4.2 },
        },
      })
      expect(answer).toHaveProperty('service.receipt_id')
      expect(answer).not.toHaveProperty('segments')
      expect(answer).not.toHaveProperty('service.usage.prompt_tokens')
    })

    test('gets plain text', async () => {
      const text: unknown = await client().audio.transcriptions.create({
        ...(await ask()),
        response_format: 'text',
      })
      expect(text).toBe(TRANSCRIPT_TEXT)
    })

    test('gets segments', async () => {
      const answer = await client().audio.transcriptions.create({
        ...(await ask()),
        response_format: 'verbose_json',
      })
      expect(answer).toMatchObject({ text: TRANSCRIPT_TEXT, duration: 4.2, language: 'english' })
      expect(answer.segments?.map(({ id, start, end }) => [id, start, end])).toEqual([
        [0, 0, 2.1],
        [1, 2.1, 4.2],
      ])
      expect(Object.keys(answer.segments?.[0] ?? {})).toHaveLength(10)
    })
  })

  test.each(everySample().map((sample, i) => [i, sample.name, sample] as const))(
    'may send sample %i, %s, which goes on under its real type',
    async (_i, name, { bytes, type }) => {
      const file = await toFile(bytes, name)
      await client().audio.transcriptions.create({ file, model: MODEL })
      const { headers, fields, files: sent } = await receivedForm(standin)
      expect(sent).toMatchObject([{ name: 'file', type, bytes }])
      expect(sent[0]?.fileName).toMatch(/^audio\.[a-z0-9]+$/)
      expect(fields).toEqual({ model: 'openai/whisper-large-v3', response_format: 'json' })
      expect(headers['content-length']).toMatch(/^[0-9]+$/)
    },
  )

  test('reaches a pinned route', async () => {
    const model = `us/standin-two/${MODEL}`
    const answer = await client().audio.transcriptions.create({
      file: await toFile(wav(1).bytes),
      model,
    })
    expect(answer).toHaveProperty('service.routed_model', `standin-two/${MODEL}`)
    expect(answer).toHaveProperty('service.requested_route', `standin-two/${MODEL}`)
  })
})

function transcriptionModel() {
  const { baseURL, apiKey, fetch } = session()
  return createOpenAI({ baseURL, apiKey, fetch }).transcription(MODEL)
}

describe('the Vercel AI SDK', () => {
  test.each([wav(4.2), mp3(100), m4a(2), recordedWebm(5)])(
    'transcribes $name',
    async ({ bytes }) => {
      const result = await transcribe({ model: transcriptionModel(), audio: bytes })
      expect(result.text).toBe(TRANSCRIPT_TEXT)
    },
  )

  test('understands the segments', async () => {
    const result = await transcribe({
      model: transcriptionModel(),
      audio: wav(4.2).bytes,
      providerOptions: { openai: { language: 'en', responseFormat: 'verbose_json' } },
    })
    expect(result.segments).toHaveLength(2)
    expect(result.durationInSeconds).toBe(4.2)
  })
})

async function curl(...args: readonly string[]): Promise<string> {
  const { baseURL, apiKey } = session()
  const url = `${baseURL}/audio/transcriptions`
  const all = ['-s', '-S', '-i', url, '-H', `Authorization: Bearer ${apiKey}`, ...args]
  return (await promisify(execFile)('curl', all)).stdout
}

describe('curl', () => {
  test('-F sends a file', async () => {
    const answer = await curl('-F', `file=@${savedFile()}`, '-F', `model=${MODEL}`)
    expect(answer).toMatch(/^HTTP\/1.1 200/)
    expect(answer).toContain(TRANSCRIPT_TEXT)
  })

  test('-F gets text, its route and its receipt in headers', async () => {
    const form = [
      '-F',
      `file=@${savedFile()}`,
      '-F',
      `model=${MODEL}`,
      '-F',
      'response_format=text',
    ]
    const answer = await curl(...form)
    expect(answer).toMatch(/^content-type: text\/plain; charset=utf-8\r$/im)
    expect(answer).toMatch(/^x-service-routed-model: standin\/whisper-large-v3\r$/im)
    expect(answer).toMatch(/^x-service-receipt-id: [0-9a-f-]{36}\r$/im)
    expect(answer.endsWith(`\r\n\r\n${TRANSCRIPT_TEXT}`)).toBe(true)
    const without = await curl(...form, '-H', 'X-Service-Receipt: false')
    expect(without).toMatch(/^x-service-routed-model: /im)
    expect(without).not.toMatch(/^x-service-receipt-id: /im)
  })
})

async function post(format: string, headers: Record<string, string> = {}) {
  const { bytes } = wav(4.2)
  const body = Buffer.concat([
    Buffer.from(`--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`),
    bytes,
    Buffer.from(`\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n${MODEL}`),
    Buffer.from(
      `\r\n--b\r\nContent-Disposition: form-data; name="response_format"\r\n\r\n${format}`,
    ),
    Buffer.from('\r\n--b--\r\n'),
  ])
  const answer = await session().stack.fetch('/v1/audio/transcriptions', {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=b', ...headers },
    body,
  })
  return { body, answer, text: await answer.text() }
}

describe('a transcription', () => {
  test.each(['json', 'text'])('as %s has a receipt of the exact bytes', async (format) => {
    const { body, answer, text } = await post(format)
    const fromBody = /"receipt_id":"([^"]+)"/.exec(text)?.[1]
    const id = answer.headers.get('x-service-receipt-id') ?? fromBody ?? ''
    const claims = await claimsOf(session().stack, id)
    const [exchange] = await standin.exchanges()
    expect(claims).toMatchObject({
      jti: id,
      requested_route: MODEL,
      routed_model: `standin/${MODEL}`,
      prompt_tokens: 0,
      completion_tokens: 0,
      request_digest: exchange?.request.sha256,
      response_digest: exchange?.response.sha256,
      failover: false,
      client_request_digest: createHash('sha256').update(body).digest('hex'),
      client_response_digest: createHash('sha256').update(text).digest('hex'),
    })
  })

  test.each(['json', 'text'])(
    'as %s names the headers of the service that have no effect on it, whatever they say',
    async (format) => {
      const { answer } = await post(format, {
        'x-service-timeout-seconds': 'soon',
        'x-service-failover': 'a b',
        'x-service-reasoning': 'high',
        'x-service-receipt': 'false',
        'x-service-require': 'min=simulated',
      })
      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-service-dropped-members')).toBe(
        'X-Service-Timeout-Seconds, X-Service-Failover, X-Service-Reasoning',
      )
      const plain = await post(format)
      expect(plain.answer.headers.get('x-service-dropped-members')).toBeNull()
    },
  )

  test.each(['json', 'text'] as const)(
    'as %s names the fields that have no effect on it',
    async (response_format) => {
      const file = await toFile(wav(4.2).bytes, 'a.wav')
      const { response } = await client()
        .audio.transcriptions.create(
          {
            file,
            model: MODEL,
            response_format,
            timestamp_granularities: ['word', 'segment'],
            chunking_strategy: 'auto',
          },
          { headers: { 'x-service-reasoning': 'high' } },
        )
        .withResponse()
      // The library chooses the order of the fields.
      const names = response.headers.get('x-service-dropped-members')?.split(', ')
      expect(names?.toSorted()).toEqual([
        'X-Service-Reasoning',
        'chunking_strategy',
        'timestamp_granularities%5B%5D',
      ])
    },
  )

  test('has a usage row, with or without a receipt', async () => {
    await post('json')
    const { text } = await post('json', { 'x-service-receipt': 'false' })
    expect(text).not.toContain('receipt_id')
    const { data } = await usageOf(await session().stack.fetch('/v1/usage?limit=2'))
    expect(data[0]).toMatchObject({
      model: `standin/${MODEL}`,
      modality: 'transcription',
      provider: 'standin',
      region: 'eu',
      billing_unit: 'audio_minute',
      audio_seconds: 4.2,
      prompt_tokens: 0,
      completion_tokens: 0,
      cost_eur: 0.0005,
      receipt_id: null,
      failover: false,
    })
    expect(data[1]?.receipt_id).toMatch(/^[0-9a-f-]{36}$/)
  })
})
