import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { generateApi } from 'swagger-typescript-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ERROR_GUIDE } from '../../src/worker/http/error-guide.ts'
import {
  ApiError,
  errorBody,
  ERROR_STATUS,
  publicCode,
  type ErrorCode,
} from '../../src/worker/http/errors.ts'
import { wav } from '../support/audio-samples.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** The interface description that the router serves, held against what the router does. */

const answerSchema = z.looseObject({ headers: z.record(z.string(), z.looseObject({})) })

const documentSchema = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({ operationId: z.string(), responses: z.record(z.string(), answerSchema) }),
    ),
  ),
  components: z.object({ schemas: z.record(z.string(), z.looseObject({})) }),
})

let stack: Stack
let document: z.output<typeof documentSchema>

beforeAll(async () => {
  stack = await startStack()
  document = documentSchema.parse(await (await stack.fetch('/openapi.json')).json())
}, 120_000)
afterAll(() => stack.stop())

/** What is wrong with a value of a schema; null where nothing is. */
function faultsOf(name: string, value: unknown): string | null {
  const schema = document.components.schemas[name]
  if (schema === undefined) return `no schema is named ${name}`
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  return ajv.validate(schema, value) ? null : ajv.errorsText()
}

function isErrorCode(text: string): text is ErrorCode {
  return text in ERROR_STATUS
}

const MODEL = 'glm-5'
const messages = [{ role: 'user', content: 'Hi' }]

const post = (path: string, body: object) =>
  stack.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

describe('the interface description', () => {
  test('is valid OpenAPI 3.1, and public', async () => {
    const answer = await fetch(`${stack.local.base_url}/openapi.json`)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    const result = await new Validator().validate(structuredClone(document))
    expect(result).toMatchObject({ valid: true })
    expect(document).toMatchObject({ openapi: '3.1.0' })
  })

  test('names every operation differently', () => {
    const names = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    )
    expect(new Set(names).size).toBe(names.length)
  })

  test('knows every path that the router says it serves, and no other', async () => {
    const { error } = z
      .object({ error: z.object({ message: z.string() }) })
      .parse(await (await stack.fetch('/v1/none')).json())
    const served = [...error.message.matchAll(/(GET|POST) (\/v1\/[^,]*?)(?=,|\.$)/g)]
    expect(served.length).toBeGreaterThan(5)
    for (const [, method = '', path = ''] of served) {
      expect(document.paths[path]?.[method.toLowerCase()]).toBeDefined()
    }
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      path.startsWith('/v1/') ? Object.keys(item) : [],
    )
    expect(described).toHaveLength(served.length)
  })

  test('gives every error code a meaning, and a place among the answers of some operation', () => {
    const anywhere: readonly ErrorCode[] = ['unsupported_endpoint', 'method_not_allowed']
    const text = JSON.stringify(document.paths)
    const missing = Object.keys(ERROR_STATUS)
      .filter(isErrorCode)
      .filter((code) => !text.includes(`\`${publicCode(code)}\``))
    expect(missing).toEqual(anywhere)
    expect(Object.keys(ERROR_GUIDE).toSorted()).toEqual(Object.keys(ERROR_STATUS).toSorted())
  })
})

describe('a chat request', () => {
  test.each<[object, boolean]>([
    [{ model: MODEL, messages }, true],
    [{ model: MODEL, messages, vendor: 1, n: 1, failover: ['gpt-oss-120b'] }, true],
    // A null is no value, as clients of the format send it for what is not set.
    [{ model: MODEL, messages, stream: null, temperature: null, max_tokens: null }, true],
    [{ model: MODEL, messages, failover: null, reasoning: null, attestation: null }, true],
    [{ model: MODEL, messages, stream_options: null, include_reasoning: null, top_p: null }, true],
    [{ model: MODEL, messages, attestation: {} }, false],
    [{ model: null, messages }, false],
    [{ messages }, false],
    [{ model: MODEL, messages: [] }, false],
    [{ model: MODEL, messages: [{ content: 'Hi' }] }, false],
    [{ model: MODEL, messages: [{ role: 'user', content: 7 }] }, false],
    [{ model: MODEL, messages, temperature: 3 }, false],
    [{ model: MODEL, messages, failover: ['1', '2', '3', '4', '5', '6'] }, false],
    [{ model: MODEL, messages, failover: [1] }, false],
    [{ model: MODEL, messages, max_tokens: 0 }, false],
    [{ model: MODEL, messages, reasoning: 'huge' }, false],
    [{ model: MODEL, messages, stream: 'yes' }, false],
  ])('is taken by the description as by the router: %j', async (body, taken) => {
    expect(faultsOf('ChatCompletionRequest', body) === null).toBe(taken)
    const answer = await post('/v1/chat/completions', body)
    expect(answer.status).toBe(taken ? 200 : 400)
    expect(faultsOf(taken ? 'ChatCompletion' : 'Error', await answer.json())).toBeNull()
  })
})

describe('a request to another endpoint', () => {
  const EVERYWHERE = [{ model: 7 }, { failover: 'a' }, { failover: [1] }, { attestation: {} }]

  interface Body extends Readonly<Record<string, unknown>> {
    readonly model: string
  }

  test.each<[string, string, Body, readonly object[]]>([
    [
      '/v1/embeddings',
      'EmbeddingsRequest',
      { model: 'bge-m3', input: 'Hi' },
      [
        { input: undefined },
        { input: [] },
        { input: '' },
        { input: ['a', 1] },
        { input: [-1] },
        { input: [[]] },
        { encoding_format: 'hex' },
        { dimensions: 0 },
        { user: 7 },
      ],
    ],
    [
      '/v1/responses',
      'ResponsesRequest',
      { model: MODEL, input: 'Hi' },
      [
        { input: undefined },
        { input: 7 },
        { instructions: 7 },
        { stream: 'yes' },
        { max_output_tokens: 0 },
        { temperature: 3 },
        { top_logprobs: 21 },
        { reasoning: 'high' },
        { text: { format: { type: 'xml' } } },
        { tools: [{}] },
        { include: 'a' },
        { metadata: { a: 1 } },
        { include_reasoning: 'no' },
      ],
    ],
    [
      '/v1/messages',
      'MessagesRequest',
      { model: MODEL, messages },
      [
        { messages: undefined },
        { messages: [] },
        { messages: [{ content: 'Hi' }] },
        { system: 7 },
        { max_tokens: 0 },
        { temperature: 3 },
        { stop_sequences: 'a' },
        { tools: {} },
        { tool_choice: 'any' },
        { thinking: true },
        { thinking: { type: 'enabled', budget_tokens: 0 } },
        { output_config: 'high' },
        { output_format: {} },
      ],
    ],
  ])('%s is taken by the description as by the router', async (path, schema, body, wrong) => {
    const nulls = { failover: null, attestation: null, vendor: 1 }
    for (const right of [body, { ...body, ...nulls }, { ...body, failover: [body.model] }]) {
      expect(faultsOf(schema, right)).toBeNull()
      expect((await post(path, right)).status).toBe(200)
    }
    for (const one of [...EVERYWHERE, ...wrong]) {
      const given: unknown = JSON.parse(JSON.stringify({ ...body, ...one }))
      const taken = faultsOf(schema, given) === null
      expect([one, taken, (await post(path, { ...body, ...one })).status]).toEqual([
        one,
        false,
        400,
      ])
    }
  })
})

describe('what the router answers is as described', () => {
  test.each([
    ['ModelList', '/v1/models'],
    ['ModelList', '/v1/models?detail=true'],
    ['Model', `/v1/models/${MODEL}?detail=true`],
    ['UsagePage', '/v1/usage'],
    ['KeySet', '/.well-known/jwks.json'],
    ['TrustBundle', '/.well-known/trust.json'],
    ['AttestationEnvelope', '/attestation'],
    ['Health', '/healthz'],
    ['InterfaceDescription', '/openapi.json'],
  ])('%s at %s', async (name, path) => {
    expect(faultsOf(name, await (await stack.fetch(path)).json())).toBeNull()
  })

  test('a completion, its chunks and its receipt', async () => {
    const whole: unknown = await (
      await post('/v1/chat/completions', { model: MODEL, messages })
    ).json()
    expect(faultsOf('ChatCompletion', whole)).toBeNull()
    const streamed = await post('/v1/chat/completions', {
      model: MODEL,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = [...(await streamed.text()).matchAll(/^data: (\{.*\})$/gm)].map(
      ([, json = '']) => JSON.parse(json) as unknown,
    )
    expect(chunks.length).toBeGreaterThan(2)
    for (const chunk of chunks) expect(faultsOf('ChatCompletionChunk', chunk)).toBeNull()
    const broken = errorBody(new ApiError('bad_gateway', 'The answer broke off.'))
    expect(faultsOf('ChatCompletionChunk', broken)).toBeNull()
    expect(faultsOf('ChatCompletionChunk', {})).not.toBeNull()
    const { service } = z.object({ service: z.object({ receipt_id: z.string() }) }).parse(whole)
    const receipt = await (await stack.fetch(`/v1/receipts/${service.receipt_id}`)).json()
    expect(faultsOf('Receipt', receipt)).toBeNull()
    const evidence = await stack.fetch(`/v1/receipts/${service.receipt_id}/evidence`)
    expect(faultsOf('ReceiptEvidence', await evidence.json())).toBeNull()
  })

  test.each(['json', 'verbose_json'])('a transcription as %s', async (format) => {
    const form = new FormData()
    form.set('model', 'whisper-large-v3')
    form.set('language', 'en')
    form.set('response_format', format)
    form.set('file', new Blob([new Uint8Array(wav(1).bytes)]), '世界.wav')
    const answer = await stack.fetch('/v1/audio/transcriptions', { method: 'POST', body: form })
    expect(faultsOf('Transcription', await answer.json())).toBeNull()
  })

  /** Headers that every server sends, or that are about connections, caches and browsers. */
  const COMMON =
    /^(access-control-|alt-svc|cache-control|connection|content-|date|keep-alive|referrer-policy|strict-transport-|transfer-encoding|vary|x-accel-|x-content-)/

  function describedHeaders(path: string, status: string): object {
    return document.paths[path]?.['post']?.responses[status]?.headers ?? {}
  }

  /** The headers of an answer that the description of its endpoint does not have. */
  function undescribed(path: string, { status, headers }: Response): string[] {
    const known = new Set(Object.keys(describedHeaders(path, String(status))))
    return [...headers.keys()].filter((name) => !COMMON.test(name) && !known.has(name))
  }

  test.each<[string, object]>([
    ['/v1/chat/completions', { messages }],
    ['/v1/chat/completions', { messages, stream: true }],
    ['/v1/responses', { input: 'Hi' }],
    ['/v1/messages', { messages, max_tokens: 9 }],
    ['/v1/embeddings', { model: 'bge-m3', input: 'Hi' }],
  ])('every header of the answers of %s to %j', async (path, body) => {
    const send = async (headers: Record<string, string>) => {
      const init = {
        method: 'POST',
        headers,
        body: JSON.stringify({ model: MODEL, vendor: 1, ...body }),
      }
      const answer = await stack.fetch(path, init)
      await answer.text()
      return answer
    }
    const once = { 'idempotency-key': `"headers of ${path}, ${'stream' in body}"` }
    const first = await send(once)
    const repeat = await send(once)
    const stranger = await send({ authorization: 'Bearer none' })
    expect([first, repeat, stranger].map(({ status }) => status)).toEqual([200, 200, 401])
    expect(first.headers.get('x-service-dropped-members')).toBe('vendor')
    expect(repeat.headers.get('idempotency-replayed')).toBe('true')
    expect([first, repeat, stranger].flatMap((answer) => undescribed(path, answer))).toEqual([])
  })

  test('every header of a transcription as text', async () => {
    const form = new FormData()
    form.set('model', 'whisper-large-v3')
    form.set('response_format', 'text')
    form.set('file', new Blob([new Uint8Array(wav(1).bytes)]), 'a.wav')
    const path = '/v1/audio/transcriptions'
    const headers = { 'x-service-reasoning': 'high' }
    const answer = await stack.fetch(path, { method: 'POST', headers, body: form })
    await answer.text()
    expect(answer.headers.get('x-service-routed-model')).not.toBeNull()
    expect(answer.headers.get('x-service-dropped-members')).toBe('X-Service-Reasoning')
    expect(undescribed(path, answer)).toEqual([])
  })

  test.each([
    ['/v1/chat/completions', '429', 'retry-after'],
    ['/v1/chat/completions', '429', 'x-ratelimit-reset-requests'],
    ['/v1/chat/completions', '503', 'x-should-retry'],
    ['/v1/responses', '503', 'retry-after-ms'],
    ['/v1/messages', '529', 'retry-after'],
  ])('what tells a client when to retry: %s, %s, %s', (path, status, name) => {
    expect(describedHeaders(path, status)).toHaveProperty(name)
  })

  test.each([
    ['RouteHealthList', '/admin/routes'],
    ['ProviderList', '/admin/providers'],
    ['CustomerPage', '/admin/customers'],
  ])('%s at %s, for the operator', async (name, path) => {
    const headers = { authorization: `Bearer ${stack.local.admin_token}` }
    expect(faultsOf(name, await (await stack.fetch(path, { headers })).json())).toBeNull()
  })
})

/** What an application would write on top of the generated client. */
const APPLICATION = `
const { BASE_URL: baseUrl, API_KEY: key } = process.env
const baseApiParams = { headers: { authorization: 'Bearer ' + key }, format: 'json' }
const { v1 } = new Api({ baseUrl, baseApiParams })
const models = await v1.modelsList({ type: 'chat' })
const messages = [{ role: 'user', content: 'Hi' }]
const completion = await v1.chat({ model: '${MODEL}', messages })
const usage = await v1.usage({ limit: 1 })
console.log(JSON.stringify({ models: models.data, completion: completion.data, usage: usage.data }))
`

test('a client that was generated from the description works', { timeout: 120_000 }, async () => {
  const { files } = await generateApi({
    spec: JSON.parse(JSON.stringify(document)),
    output: false,
    httpClientType: 'fetch',
    silent: true,
    toJS: true,
  })
  const code = files.find(({ fileExtension }) => fileExtension === '.js')?.fileContent ?? ''
  const directory = mkdtempSync(join(tmpdir(), 'cmr-client-'))
  try {
    const file = join(directory, 'application.mjs')
    writeFileSync(file, code + APPLICATION)
    const { base_url: BASE_URL, api_key: API_KEY } = stack.local
    const { stdout } = await promisify(execFile)(process.execPath, [file], {
      env: { ...process.env, BASE_URL, API_KEY },
    })
    expect(JSON.parse(stdout)).toMatchObject({
      models: { data: expect.arrayContaining([expect.objectContaining({ id: MODEL })]) },
      completion: { choices: [{ finish_reason: 'stop' }], service: { requested_route: MODEL } },
      usage: { data: [{ modality: 'chat' }], limit: 1 },
    })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
