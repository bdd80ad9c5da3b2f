import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorOf } from '../support/answers.ts'
import { flac, wav } from '../support/audio-samples.ts'
import type { Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'
import {
  BOUNDARY,
  formBytes,
  post,
  startTranscriptionStack,
  type Part,
} from '../support/transcription-stack.ts'

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startTranscriptionStack()
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

/** Stands in every request and every provider's error; no answer may repeat it. */
const CANARY = 'canary-7f3a'
const MIB = 1024 * 1024

const FILE: Part = { name: 'file', fileName: `${CANARY}.wav`, content: wav(1).bytes }
const MODEL: Part = { name: 'model', content: 'whisper' }

type Refusal = readonly [status: number, code: string, param: string | null]

async function refusalOf(answer: Response): Promise<Refusal> {
  expect(await answer.clone().text()).not.toContain(CANARY)
  expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  const { code, param } = await errorOf(answer)
  return [answer.status, code, param]
}

const field = (name: string, content: string): Part => ({ name, content })
const file = (content: string | Buffer, more: Partial<Part> = {}): Part => ({
  ...FILE,
  content,
  ...more,
})

describe('an upload is refused', () => {
  test.each<[what: string, parts: readonly Part[], refusal: Refusal]>([
    ['without a file', [MODEL], [400, 'missing_field', 'file']],
    ['without a model', [FILE], [400, 'missing_field', 'model']],
    [
      'for verbose_json without a language',
      [FILE, MODEL, field('response_format', 'verbose_json')],
      [400, 'missing_field', 'language'],
    ],
    [
      'for a format there is not',
      [FILE, MODEL, field('response_format', CANARY)],
      [400, 'invalid_response_format', 'response_format'],
    ],
    [
      'for a stream',
      [FILE, MODEL, field('stream', 'true')],
      [400, 'invalid_request_error', 'stream'],
    ],
    ['for an unknown model', [FILE, field('model', CANARY)], [400, 'invalid_model', 'model']],
    ['for a chat model', [FILE, field('model', 'glm')], [400, 'invalid_model', 'model']],
    [
      'with a hint against its route',
      [FILE, field('model', 'eu/nova/whisper'), field('region', 'us')],
      [400, 'invalid_model', 'region'],
    ],
    ['with two files', [FILE, MODEL, FILE], [400, 'invalid_multipart', 'file']],
    ['with two models', [MODEL, FILE, MODEL], [400, 'invalid_multipart', 'model']],
    ['with an empty file', [file(''), MODEL], [400, 'invalid_file', 'file']],
    [
      'with text named .wav',
      [file(`${CANARY} is no sound`, { type: 'audio/wav' }), MODEL],
      [400, 'unsupported_file_type', 'file'],
    ],
    [
      'with a type that its only route does not take',
      [file(flac(1).bytes), field('model', 'strict')],
      [400, 'unsupported_file_type', 'file'],
    ],
    [
      'with a size that its only route does not take',
      [FILE, field('model', 'strict')],
      [400, 'file_too_large', 'file'],
    ],
    ['with a file over 25 MiB', [file(wav(820).bytes), MODEL], [413, 'file_too_large', 'file']],
    ['without a price', [FILE, field('model', 'unpriced')], [503, 'route_not_priced', null]],
  ])('%s', async (_what, parts, refusal) => {
    const answer = await post(stack, formBytes(parts))
    expect(await refusalOf(answer)).toEqual(refusal)
    const lasting = refusal[1] === 'route_not_priced' ? 'false' : null
    expect(answer.headers.get('x-should-retry')).toBe(lasting)
    expect(await standin.exchanges()).toEqual([])
  })

  test.each([
    ['as JSON', 'application/json'],
    ['without a boundary', 'multipart/form-data'],
    ['with an empty boundary', 'multipart/form-data; boundary='],
    ['as another multipart', `multipart/mixed; boundary=${BOUNDARY}`],
  ])('%s', async (_what, type) => {
    const answer = await post(stack, formBytes([FILE, MODEL]), { 'content-type': type })
    expect(await refusalOf(answer)).toEqual([400, 'invalid_content_type', 'Content-Type'])
  })

  test.each([
    ['cut in its file', formBytes([MODEL, FILE], '').subarray(0, -1000)],
    ['without its closing boundary', formBytes([FILE, MODEL], '')],
    ['of another boundary', Buffer.from(`--other\r\n${CANARY}\r\n--other--\r\n`)],
    ['of nothing', Buffer.alloc(0)],
  ])('%s', async (_what, body) => {
    expect(await refusalOf(await post(stack, body))).toEqual([400, 'invalid_multipart', null])
  })

  test('over 26 MiB, declared or not', async () => {
    const body = formBytes([MODEL, file(Buffer.alloc(27 * MIB))])
    expect(await refusalOf(await post(stack, body))).toEqual([413, 'file_too_large', 'file'])
    const piece = new Uint8Array(body.subarray(0, MIB))
    let sent = 0
    const stream = new ReadableStream({
      pull: (controller) => (sent++ < 27 ? controller.enqueue(piece) : controller.close()),
    })
    const answer = await stack.fetch('/v1/audio/transcriptions', {
      method: 'POST',
      headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: stream,
      duplex: 'half',
    } as RequestInit)
    expect(await refusalOf(answer)).toEqual([413, 'file_too_large', 'file'])
  })

  test('without a key or with a wrong one, which its sender learns however large it is', async () => {
    const large = formBytes([file(Buffer.alloc(20 * MIB)), MODEL])
    for (const authorization of ['', `Bearer ${stack.local.api_key.slice(0, -4)}AAAA`]) {
      const answer = await post(stack, large, { authorization })
      expect(await refusalOf(answer)).toEqual([401, 'unauthorized', null])
    }
  })

  test('that its balance does not cover', async () => {
    const admin = { authorization: `Bearer ${stack.local.admin_token}` }
    const make = async (path: string, body: object): Promise<Record<string, string>> => {
      const init = { method: 'POST', headers: admin, body: JSON.stringify(body) }
      return (await stack.fetch(path, init)).json()
    }
    const customer = { name: 'poor', billing: 'prepaid', balance_eur: '0.03' }
    const { id } = await make('/admin/customers', customer)
    const { key } = await make(`/admin/customers/${id}/keys`, { name: 'poor' })
    const authorization = `Bearer ${key}`
    const dear = await post(stack, formBytes([file(wav(2).bytes), MODEL]), { authorization })
    expect(await refusalOf(dear)).toEqual([402, 'insufficient_balance', null])
    const model = field('model', 'nova/whisper')
    const cheap = await post(stack, formBytes([file(wav(2).bytes), model]), { authorization })
    expect(cheap.status).toBe(200)
  })
})

test('an upload that breaks off leaves the router serving', async () => {
  const call = httpRequest(`${stack.local.base_url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${stack.local.api_key}`,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      'content-length': MIB,
    },
  })
  call.on('error', () => {})
  await new Promise((resolve) => {
    call.write(formBytes([MODEL, FILE]).subarray(0, 10_000), resolve)
  })
  call.destroy()
  expect((await post(stack, formBytes([FILE, MODEL]))).status).toBe(200)
})

const REFUSAL = JSON.stringify({ detail: CANARY })

describe('a refusal by the provider', () => {
  test.each<[status: number, body: string, refusal: Refusal]>([
    [400, JSON.stringify({ error: { message: CANARY } }), [400, 'invalid_file', 'file']],
    [422, REFUSAL, [400, 'invalid_file', 'file']],
    [413, REFUSAL, [400, 'file_too_large', 'file']],
    [415, CANARY, [400, 'unsupported_file_type', 'file']],
  ])('of the file with %i is final', async (status, body, refusal) => {
    await standin.script({ status, headers: { 'content-type': 'text/plain' }, frames: [body] })
    expect(await refusalOf(await post(stack, formBytes([FILE, MODEL])))).toEqual(refusal)
    expect(await standin.exchanges()).toHaveLength(1)
  })

  test('by rate limit everywhere is a rate limit', async () => {
    const headers = { 'retry-after': '7' }
    await standin.script({ status: 429, headers, frames: [CANARY], times: 2 })
    const answer = await post(stack, formBytes([FILE, MODEL]))
    expect(await refusalOf(answer)).toEqual([429, 'upstream_rate_limit', null])
    expect(answer.headers.get('retry-after')).toBe('7')
  })

  test.each<[what: string, status: number, frames: string[], end: 'end' | 'reset' | 'hang']>([
    ['a 500', 500, [CANARY], 'end'],
    ['a 503', 503, [CANARY], 'end'],
    ['a 401', 401, [CANARY], 'end'],
    ['an error in a 200', 200, [`{"error":"${CANARY}"}`], 'end'],
    ['an answer that is no JSON', 200, [CANARY], 'end'],
    ['an answer that breaks off', 200, ['{"text":'], 'reset'],
    ['a lost connection', 200, [], 'reset'],
    ['silence', 200, [], 'hang'],
  ])('of another kind is an upstream error: %s', async (_what, status, frames, end) => {
    await standin.script({ status, frames, end, times: 4 })
    const answer = await post(stack, formBytes([FILE, MODEL]))
    expect(await refusalOf(answer)).toEqual([502, 'upstream_error', null])
    const { data }: { data: unknown[] } = await (await stack.fetch('/v1/usage?limit=1')).json()
    expect(JSON.stringify(data)).not.toContain(answer.headers.get('x-request-id') ?? 'none')
  })
})
