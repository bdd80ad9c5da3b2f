import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorOf } from '../support/answers.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import { startStack, type Stack } from '../support/stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

/** Stands in every body below; no answer may repeat it. */
const CANARY = 'canary-7f3a'
const MESSAGES = [{ role: 'user', content: CANARY }]
const OK = { model: 'glm-5', messages: MESSAGES }
const TIMEOUT_HEADER = 'X-Service-Timeout-Seconds'
const MIB = 1024 * 1024

interface Refusal {
  readonly status: number
  readonly code: string
  readonly param: string | null
}

/** What an answer says, once it is seen to have a request id and nothing of the request in it. */
async function refusalOf(answer: Response): Promise<Refusal> {
  expect(await answer.clone().text()).not.toContain(CANARY)
  expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  const { code, param } = await errorOf(answer)
  return { status: answer.status, code, param }
}

function refusal(status: number, code: string, param: string | null = null): Refusal {
  return { status, code, param }
}

function chat(body: string, headers: Record<string, string> = {}): Promise<Response> {
  return stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
}

/** Whoever forwards the request by its length would take the rest of it for another, of another client. */
test('a body with both a length and chunks ends with its chunks, and its connection takes no other request', async () => {
  const authorization = `Bearer ${stack.local.api_key}`
  const body = JSON.stringify(OK)
  const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const behind = rawRequest('GET', '/v1/models', { authorization })
  for (const length of [body.length, chunks.length + behind.length]) {
    const both = { 'content-length': length, 'transfer-encoding': 'chunked' }
    const client = await RawClient.connect(stack.local.base_url)
    client.send(rawRequest('POST', '/v1/chat/completions', { authorization, ...both }, chunks))
    client.send(behind)
    expect(await client.hears('"chat.completion"')).toBe(true)
    expect(await client.hears('"object":"list"', 500)).toBe(false)
    expect(client.received).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is)
    expect(client.closed).toBe(true)
    client.leave()
  }
})

describe('a chat request is refused', () => {
  const cases: [what: string, body: string, expected: Refusal][] = [
    ['that is not JSON', `{"${CANARY}`, refusal(400, 'invalid_request_error')],
    ['that is no object', `["${CANARY}"]`, refusal(400, 'invalid_request_error')],
    [
      'without a model',
      JSON.stringify({ messages: MESSAGES }),
      refusal(400, 'missing_field', 'model'),
    ],
    [
      'without messages',
      JSON.stringify({ model: 'glm-5', user: CANARY }),
      refusal(400, 'missing_field', 'messages'),
    ],
    [
      'with no message in messages',
      JSON.stringify({ model: 'glm-5', messages: [], user: CANARY }),
      refusal(400, 'invalid_request_error', 'messages'),
    ],
    [
      'with a temperature of 2.1',
      JSON.stringify({ ...OK, temperature: 2.1 }),
      refusal(400, 'invalid_request_error', 'temperature'),
    ],
    [
      'for a model that is not there',
      JSON.stringify({ ...OK, model: CANARY }),
      refusal(404, 'model_not_found', 'model'),
    ],
    [
      'with six failover entries',
      JSON.stringify({ ...OK, failover: Array(6).fill('glm-5') }),
      refusal(400, 'invalid_request_error', 'failover'),
    ],
    [
      'with an unknown failover entry',
      JSON.stringify({ ...OK, failover: [CANARY] }),
      refusal(404, 'model_not_found', 'failover'),
    ],
    [
      'with an effort off the ladder',
      JSON.stringify({ ...OK, reasoning: CANARY }),
      refusal(400, 'invalid_request_error', 'reasoning'),
    ],
    [
      'for a transcription model',
      JSON.stringify({ ...OK, model: 'whisper-large-v3' }),
      refusal(400, 'invalid_request_error', 'model'),
    ],
    [
      'over 10 MiB',
      JSON.stringify({ ...OK, user: CANARY.repeat(MIB) }),
      refusal(413, 'request_too_large'),
    ],
    [
      'with hundreds of thousands of content parts',
      `{"model":"glm-5","messages":[{"role":"user","content":[${'{},'.repeat(140_000)}{}]}]}`,
      refusal(413, 'request_too_large'),
    ],
    [
      'with hundreds of thousands of members in a message',
      `{"model":"glm-5","messages":[{"role":"user",${'"":0,'.repeat(530_000)}"content":"a"}]}`,
      refusal(413, 'request_too_large'),
    ],
  ]
  test.each(cases)('%s', async (_what, body, expected) => {
    expect(await refusalOf(await chat(body))).toEqual(expected)
  })

  test('over 10 MiB when its length is not declared', async () => {
    const piece = new TextEncoder().encode(CANARY.repeat(MIB / 8))
    let sent = 0
    const body = new ReadableStream({
      pull: (controller) => (sent++ < 16 ? controller.enqueue(piece) : controller.close()),
    })
    const answer = await stack.fetch('/v1/chat/completions', {
      method: 'POST',
      body,
      duplex: 'half',
    } as RequestInit)
    expect(await refusalOf(answer)).toEqual(refusal(413, 'request_too_large'))
  })

  test.each(['0', '-1', '1.5', 'soon'])('with a time-out of %s', async (seconds) => {
    const headers = { [TIMEOUT_HEADER]: seconds }
    const answer = await chat(JSON.stringify(OK), headers)
    expect(await refusalOf(answer)).toEqual(
      refusal(400, 'invalid_timeout_override', TIMEOUT_HEADER),
    )
  })

  test('with a time-out and a stream', async () => {
    const body = JSON.stringify({ ...OK, stream: true })
    const answer = await chat(body, { [TIMEOUT_HEADER]: '10' })
    expect(await refusalOf(answer)).toEqual(
      refusal(400, 'invalid_timeout_override', TIMEOUT_HEADER),
    )
  })
})

describe('a request is refused', () => {
  const UNAUTHORIZED = refusal(401, 'unauthorized')

  test.each(['/v1/chat/completions', '/v1/usage', '/v1/receipts/x'])(
    'without a key: %s',
    async (path) => {
      const method = path.endsWith('completions') ? 'POST' : 'GET'
      const init = method === 'POST' ? { method, body: JSON.stringify(OK) } : { method }
      expect(await refusalOf(await fetch(stack.local.base_url + path, init))).toEqual(UNAUTHORIZED)
    },
  )

  test('with a wrong key', async () => {
    const secretChanged = `${stack.local.api_key.slice(0, -4)}AAAA`
    for (const key of ['wrong', secretChanged, 'cmr_a_b_c']) {
      const answer = await chat(JSON.stringify(OK), { authorization: `Bearer ${key}` })
      expect(await refusalOf(answer)).toEqual(UNAUTHORIZED)
    }
  })

  test('with a deleted key, also where the request itself is wrong', async () => {
    const admin = { authorization: `Bearer ${stack.local.admin_token}` }
    const keys = `/admin/customers/${stack.local.customer_id}/keys`
    const made = await stack.fetch(keys, {
      method: 'POST',
      headers: admin,
      body: JSON.stringify({ name: 'short-lived' }),
    })
    const { key, key_prefix: prefix }: Record<string, string> = await made.json()
    const authorization = `Bearer ${key}`
    expect((await chat(JSON.stringify(OK), { authorization })).status).toBe(200)
    const deleted = await stack.fetch(`${keys}/${prefix}`, { method: 'DELETE', headers: admin })
    expect(deleted.ok).toBe(true)
    // It is never served; that it is gone may take a second to show where the request is wrong.
    const wrong = async () => refusalOf(await chat('{}', { authorization }))
    await expect.poll(wrong, { timeout: 30_000 }).toEqual(UNAUTHORIZED)
    expect(await refusalOf(await chat(JSON.stringify(OK), { authorization }))).toEqual(UNAUTHORIZED)
  })

  test('with the wrong method, naming the right one', async () => {
    const answer = await stack.fetch('/v1/chat/completions')
    expect(answer.headers.get('allow')).toContain('POST')
    expect(await refusalOf(answer)).toEqual(refusal(405, 'method_not_allowed'))
  })

  // Clients and proxies that resolve dot segments, and those that do not, must mean the same endpoint.
  test.each(['/v1/./', '/v1/x/../', '/./v1/', '/v1/%2e/', '/v1/x/%2E%2e/', '/../v1/'])(
    'by its path without dot segments: %s',
    async (start) => {
      const heard = async (path: string, authorization: string) => {
        const client = await RawClient.connect(stack.local.base_url)
        client.send(rawRequest('GET', path, { authorization }))
        expect(await client.hears('HTTP/1.1 ', 30_000)).toBe(true)
        const [, status] = /HTTP\/1\.1 (\d+)/.exec(client.received) ?? []
        client.leave()
        return status
      }
      const own = `Bearer ${stack.local.api_key}`
      expect(await heard(`${start}models`, own)).toBe('200')
      expect(await heard(`${start}models`, 'Bearer none')).toBe('200')
      expect(await heard(`${start}usage`, own)).toBe('200')
      expect(await heard(`${start}usage`, 'Bearer none')).toBe('401')
      expect(await heard(`${start}../admin/customers`, own)).toBe('401')
      expect(await heard(`${start}%2e%2e/admin/customers`, own)).toBe('401')
    },
  )

  test.each(['/v1/completions', '/v1/audio/speech', '/v1/batches'])(
    'on the unsupported path %s',
    async (path) => {
      const answer = await stack.fetch(path, { method: 'POST', body: JSON.stringify(OK) })
      expect(await refusalOf(answer)).toEqual(refusal(404, 'unsupported_endpoint'))
    },
  )

  test.each([
    '/v1/chat/completions?a=1',
    '/v1/chat/completions?next=/v1/models',
    '/v1/chat/completions/',
  ])('by the endpoint of its path, however that is written: %s', async (target) => {
    const answer = await stack.fetch(target, { method: 'POST', body: '{}' })
    expect(await refusalOf(answer)).toEqual(refusal(400, 'missing_field', 'model'))
  })

  test.each([
    ['POST', '/v1/chat', 404, 'unsupported_endpoint'],
    ['POST', '/v1/chat/completions/more', 404, 'unsupported_endpoint'],
    ['POST', '//v1/chat/completions', 404, 'not_found'],
    ['GET', '/?/v1/models', 404, 'not_found'],
    ['DELETE', '/v1/models', 405, 'method_not_allowed'],
  ])('by no endpoint: %s %s', async (method, target, status, code) => {
    const answer = await stack.fetch(target, { method })
    expect(await refusalOf(answer)).toEqual(refusal(status, code))
  })

  test.each([
    ['/chat/completions', 'There is nothing at this path.', 'not_found'],
    ['/v1/v1/chat/completions', 'This endpoint is not supported.', 'unsupported_endpoint'],
    [
      '/v1/chat/completions/chat/completions',
      'This endpoint is not supported.',
      'unsupported_endpoint',
    ],
  ])(
    'by the right base URL where the one of the client was not: %s',
    async (path, reason, code) => {
      const answer = await stack.fetch(path, { method: 'POST', body: JSON.stringify(OK) })
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({
        error: {
          code,
          message: `${reason} This endpoint is at /v1/chat/completions: check the base URL of your client. It must be the address of this router followed by /v1, without the path of an endpoint.`,
        },
      })
    },
  )

  test('for a receipt without an id', async () => {
    const answer = await stack.fetch('/v1/receipts/')
    expect(await refusalOf(answer)).toEqual(refusal(400, 'missing_field', 'id'))
  })

  test.each(['limit=x', 'limit=-1', 'offset=1.5', 'start=yesterday', 'end=2026'])(
    'for usage with %s',
    async (query) => {
      const answer = await stack.fetch(`/v1/usage?${query}`)
      const param = query.split('=')[0] ?? ''
      expect(await refusalOf(answer)).toEqual(refusal(400, 'invalid_parameter', param))
    },
  )

  test('by the admin interface without its token', async () => {
    const answer = await stack.fetch('/admin/customers')
    expect(await refusalOf(answer)).toEqual(UNAUTHORIZED)
  })
})
