import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorObject, sound, status } from '../faults/answers.ts'
import { PROMPT } from '../faults/ask.ts'
import { openWorld, type World, type WorldRoute } from '../faults/world.ts'
import { errorOf } from '../support/answers.ts'
import type { Script } from '../support/fault-provider.ts'

/** Every error of chat completions, as clients see it: status, code and `param`, with its type and headers. */

const saying = (code: string): string => JSON.stringify(errorObject(code))

const FAILING: Readonly<Record<string, Script>> = {
  limited: status(429, { 'retry-after': '7' }),
  broken: status(500),
  down: status(503, { 'retry-after': '9' }),
  picky: status(400),
  small: status(400, {}, saying('context_length_exceeded')),
  prim: status(400, {}, saying('content_policy_violation')),
  silent: () => {},
}

const EFFORTS = { default_effort: 'high', efforts: { high: {}, low: {} } }

const ROUTES: readonly WorldRoute[] = [
  { model: 'sound', at: 'alpha', script: sound },
  { model: 'thinking', at: 'alpha', script: sound, more: { reasoning: EFFORTS } },
  { model: 'unpriced', at: 'alpha', more: { pricing: undefined } },
  { model: 'vectors', at: 'alpha', more: { type: 'embedding' } },
  { model: 'ears', at: 'alpha', more: { type: 'transcription' } },
  { model: 'ocr', at: 'alpha', script: sound, more: { ocr: true } },
  ...Object.entries(FAILING).flatMap(([model, script]): WorldRoute[] => [
    { model, at: 'alpha', script },
    { model: `ocr-${model}`, at: 'alpha', script, more: { ocr: true } },
  ]),
]

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'insufficient_quota',
  404: 'invalid_request_error',
  405: 'invalid_request_error',
  413: 'invalid_request_error',
  429: 'rate_limit_error',
  502: 'server_error',
  503: 'server_error',
  504: 'server_error',
}

const PNG = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=='

/** An OCR request of an image at this URL. */
function page(url = PNG, more: object = {}): object {
  const image = { type: 'image_url', image_url: { url } }
  const text = { type: 'text', text: 'Free OCR.' }
  return { model: 'ocr', messages: [{ role: 'user', content: [image, text] }], ...more }
}

const messages = [{ role: 'user', content: PROMPT }]
const of = (model: string, more: object = {}) => ({ model, messages, ...more })
const TIMEOUT = 'X-Service-Timeout-Seconds'

interface Row {
  readonly when: string
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
  readonly expected: readonly [status: number, code: string, param: string | null]
  readonly retryAfter?: string
}

const ROWS: readonly Row[] = [
  {
    when: 'no route has the effort',
    body: of('thinking', { reasoning: 'max' }),
    expected: [400, 'invalid_request_error', 'reasoning'],
  },
  {
    when: 'failure 33: the route has no efforts, off included',
    body: of('sound', { reasoning: 'off' }),
    expected: [400, 'invalid_request_error', 'reasoning'],
  },
  {
    when: 'the effort is off the ladder',
    body: of('thinking', { reasoning: 'huge' }),
    expected: [400, 'invalid_request_error', 'reasoning'],
  },
  {
    when: 'the effort comes under a provider’s name',
    body: of('thinking', { reasoning_effort: 'high' }),
    expected: [400, 'invalid_request_error', 'reasoning_effort'],
  },
  {
    when: 'the effort is an object',
    body: of('thinking', { reasoning: { effort: 'high' } }),
    expected: [400, 'invalid_request_error', 'reasoning'],
  },
  {
    when: 'the time-out is no number',
    body: of('sound'),
    headers: { [TIMEOUT]: 'soon' },
    expected: [400, 'invalid_timeout_override', TIMEOUT],
  },
  {
    when: 'a stream has a time-out',
    body: of('sound', { stream: true }),
    headers: { [TIMEOUT]: '9' },
    expected: [400, 'invalid_timeout_override', TIMEOUT],
  },
  {
    when: 'OCR is asked for an effort',
    body: page(PNG, { reasoning: 'low' }),
    expected: [400, 'unsupported_reasoning', 'reasoning'],
  },
  {
    when: 'OCR is asked for an effort under its other name',
    body: page(PNG, { reasoning_effort: 'low' }),
    expected: [400, 'unsupported_reasoning', 'reasoning_effort'],
  },
  {
    when: 'an OCR image is elsewhere',
    body: page('https://x.test/a.png'),
    expected: [400, 'unsupported_image_url', 'image_url.url'],
  },
  {
    when: 'an OCR prompt is another',
    body: { ...page(), messages: [{ role: 'system', content: 'x' }] },
    expected: [400, 'invalid_request_error', 'messages'],
  },
  {
    when: 'the key is unknown',
    body: of('sound'),
    headers: { authorization: 'Bearer cmr_a_b_c' },
    expected: [401, 'unauthorized', null],
  },
  {
    when: 'the balance is too low',
    body: of('sound', { max_tokens: 900_000_000 }),
    expected: [402, 'insufficient_balance', null],
  },
  {
    when: 'the OCR provider limits its rate',
    body: page(PNG, { model: 'ocr-limited' }),
    expected: [429, 'upstream_rate_limit', null],
    retryAfter: '7',
  },
  {
    when: 'the OCR provider fails',
    body: page(PNG, { model: 'ocr-broken' }),
    expected: [502, 'bad_gateway', null],
  },
  {
    when: 'a provider limits its rate',
    body: of('limited'),
    expected: [429, 'upstream_rate_limit', null],
    retryAfter: '7',
  },
  {
    when: 'failure 04: a provider fails',
    body: of('broken'),
    expected: [502, 'bad_gateway', null],
  },
  {
    when: 'all routes are down',
    body: of('down', { failover: ['broken'] }),
    expected: [503, 'routes_unavailable', null],
    retryAfter: '9',
  },
  {
    when: 'the only route is down',
    body: of('down'),
    expected: [503, 'routes_unavailable', null],
    retryAfter: '9',
  },
  {
    when: 'a provider refuses the request',
    body: of('picky', { failover: ['sound'] }),
    expected: [400, 'upstream_rejected', null],
  },
  {
    when: 'the prompt is too long',
    body: of('small'),
    expected: [400, 'context_length_exceeded', 'messages'],
  },
  {
    when: 'the content is refused',
    body: of('prim', { failover: ['sound'] }),
    expected: [400, 'content_policy_violation', null],
  },
  {
    when: 'the time is over',
    body: of('silent'),
    headers: { [TIMEOUT]: '1' },
    expected: [504, 'upstream_timeout', null],
  },
  { when: 'no route has a price', body: of('unpriced'), expected: [503, 'route_not_priced', null] },
  { when: 'the model is unknown', body: of('nobody'), expected: [404, 'model_not_found', 'model'] },
  {
    when: 'a failover entry is unknown',
    body: of('sound', { failover: ['nobody'] }),
    expected: [404, 'model_not_found', 'failover'],
  },
  {
    when: 'the model makes vectors',
    body: of('vectors'),
    expected: [400, 'invalid_request_error', 'model'],
  },
  { when: 'the model hears', body: of('ears'), expected: [400, 'invalid_request_error', 'model'] },
  { when: 'the model is missing', body: { messages }, expected: [400, 'missing_field', 'model'] },
  {
    when: 'the messages are missing',
    body: { model: 'sound' },
    expected: [400, 'missing_field', 'messages'],
  },
  {
    when: 'there are no messages',
    body: { model: 'sound', messages: [] },
    expected: [400, 'invalid_request_error', 'messages'],
  },
  {
    when: 'the temperature is too high',
    body: of('sound', { temperature: 2.1 }),
    expected: [400, 'invalid_request_error', 'temperature'],
  },
  {
    when: 'there are six failover entries',
    body: of('sound', { failover: Array(6).fill('sound') }),
    expected: [400, 'invalid_request_error', 'failover'],
  },
  {
    when: 'the body is over 10 MiB',
    body: of('sound', { user: 'u'.repeat(10 * 1024 * 1024) }),
    expected: [413, 'request_too_large', null],
  },
]

let world: World
let key = ''

beforeAll(async () => {
  world = await openWorld(ROUTES)
  ;({ key } = await world.newCustomer())
}, 120_000)
afterAll(() => world.close())

describe('a chat request is answered with the error of the table when', () => {
  test.each(ROWS)('$when: $expected', async ({ body, headers, expected, retryAfter }) => {
    const answer = await world.stack.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify(body),
    })
    const { code, param, type, message } = await errorOf(answer)
    expect([answer.status, code, param]).toEqual(expected)
    expect(type).toBe(TYPES[answer.status])
    expect(message).not.toContain(PROMPT)
    expect(answer.headers.get('retry-after')).toBe(retryAfter ?? null)
    // What is billed each time is not to be asked for again, either.
    const lasting = ['route_not_priced', 'unauthorized', 'upstream_timeout'].includes(code)
    expect(answer.headers.get('x-should-retry')).toBe(lasting ? 'false' : null)
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('the method is another: 405 method_not_allowed', async () => {
    const answer = await world.stack.fetch('/v1/chat/completions')
    expect([answer.status, (await errorOf(answer)).code]).toEqual([405, 'method_not_allowed'])
    expect(answer.headers.get('allow')).toBe('POST')
  })
})
