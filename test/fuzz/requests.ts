import * as fc from 'fast-check'
import { chatBody, MODELS } from './chat-requests.ts'
import { formBody, formType } from './form-requests.ts'
import { mutated, objectText, oddValue } from './json-texts.ts'
import type { WireRequest } from './wire-request.ts'

/** Requests for everything that the router serves, and for what it does not. */

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'PURGE',
  'get',
]
const PATHS = [
  '/v1/chat/completions',
  '/v1/audio/transcriptions',
  '/v1/models',
  '/v1/usage',
  '/v1/receipts/',
  '/attestation',
  '/.well-known/jwks.json',
  '/healthz',
  '/admin/customers',
  '/admin/metrics',
  '/',
]

type Header = readonly [string, string]
type Headers = fc.Arbitrary<readonly Header[]>

const oneOf = (signs: string) => fc.constantFrom(...signs.split(''))
const line = fc.string({ unit: oneOf(' !"#$%&,;=:abcXYZ019~\t\u00e4'), maxLength: 30 })
const token = fc.string({
  unit: oneOf("!#$%&'*+-.^_`|~abcXYZ019"),
  minLength: 1,
  maxLength: 20,
})

const header: fc.Arbitrary<Header> = fc.oneof(
  fc.tuple(
    fc.constantFrom(
      'x-service-receipt',
      'x-service-timeout-seconds',
      'content-encoding',
      'accept',
      'accept-encoding',
      'origin',
      'range',
      'if-none-match',
      'x-forwarded-for',
    ),
    fc.oneof(
      line,
      fc.constantFrom('true', 'false', '1', '5', '-1', '1e9', 'identity', 'gzip', '*'),
    ),
  ),
  fc.tuple(
    fc.constant('authorization'),
    fc.oneof(
      line,
      line.map((text) => `Bearer ${text}`),
    ),
  ),
  fc.tuple(
    token.map((name) => `x-${name}`),
    line,
  ),
  fc.constant<Header>(['x-long', 'y'.repeat(7_000)]),
)
const headers = fc.array(header, { maxLength: 3 })
/** Most requests should get past the first check. */
const fewHeaders: Headers = fc.oneof(
  { weight: 8, arbitrary: fc.constant<readonly Header[]>([]) },
  { weight: 1, arbitrary: headers },
)

function request(
  kind: string,
  method: fc.Arbitrary<string>,
  target: fc.Arbitrary<string>,
  more: { readonly headers?: Headers; readonly body?: fc.Arbitrary<Buffer> } = {},
): fc.Arbitrary<WireRequest> {
  return fc.record({
    kind: fc.constant(kind),
    method,
    target,
    headers: more.headers ?? fewHeaders,
    body: more.body ?? fc.constant(Buffer.alloc(0)),
  })
}

const POST = fc.constant('POST')
const GET = fc.constant('GET')

const chat = request('chat', POST, fc.constant('/v1/chat/completions'), { body: chatBody })

const upload = request('transcription', POST, fc.constant('/v1/audio/transcriptions'), {
  headers: fc.tuple(formType, fewHeaders).map(([type, rest]) => [['content-type', type], ...rest]),
  body: formBody,
})

const leaving = fc
  .tuple(fc.oneof(chat, upload), fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([whole, at]) => ({
    ...whole,
    kind: `${whole.kind}, half`,
    leavesAfter: Math.floor(at * whole.body.length),
  }))

const VALUES = ['', '0', '1', '-1', '1e3', '99999999999999999999', '2026-01-01T00:00:00Z', 'now']
const parameter = fc
  .tuple(
    fc.constantFrom('limit', 'offset', 'start', 'end', 'type', 'detail', 'nonce', 'after', 'x'),
    fc.oneof(fc.constantFrom(...VALUES, 'chat', 'ab'.repeat(32)), fc.webFragments(), token),
  )
  .map(([name, value]) => `${name}=${value}`)
const query = request(
  'query',
  GET,
  fc
    .tuple(
      fc.constantFrom('/v1/usage', '/v1/models', '/attestation'),
      fc.array(parameter, { maxLength: 4 }),
    )
    .map(([path, parameters]) => `${path}?${parameters.join('&')}`),
)

const segment = fc.oneof(
  fc.constantFrom(
    '..',
    '.',
    '',
    '%2e%2e',
    '%2f',
    '%00',
    '%ff',
    '%',
    '%zz',
    ';',
    '*',
    ':id',
    ...MODELS,
  ),
  fc.constantFrom('v1', 'chat', 'completions', 'models', 'receipts', 'evidence', 'admin', 'keys'),
  fc.webSegment({ size: 'small' }),
)
const path = fc.oneof(
  fc.constantFrom(...PATHS),
  fc.tuple(fc.constantFrom(...PATHS), segment).map((both) => both.join('/')),
  fc.array(segment, { maxLength: 6 }).map((segments) => `/${segments.join('/')}`),
  fc.constantFrom(
    '*',
    'http://other.test/v1/models',
    `/${'a'.repeat(7_000)}`,
    '/v1/models?%',
    '//',
  ),
)
const anywhere = request(
  'anywhere',
  fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...METHODS) }, { weight: 1, arbitrary: token }),
  path,
  { headers },
)

/** Requests with the admin token, which must not be a way to break anything either. */
export function requests(adminToken: string): fc.Arbitrary<WireRequest> {
  const name = fc.constantFrom(
    'name',
    'plan',
    'billing',
    'balance_eur',
    'amount_eur',
    'reference',
    'x',
  )
  const value = fc.oneof(
    fc.constantFrom('"postpaid"', '"prepaid"', '"1.00"', '"-1"', '"1e3"', '"0.0000000001"', '"x"'),
    oddValue,
  )
  const body = objectText(fc.array(fc.tuple(name, value), { maxLength: 4 })).map((text) =>
    Buffer.from(text),
  )
  const id = fc.constantFrom('x', '0'.repeat(28), '%00', 'a/keys', 'a/credits')
  const target = fc.oneof(
    fc.constantFrom('/admin/customers', '/admin/maintenance', '/admin/routes', '/admin/metrics'),
    id.map((given) => `/admin/customers/${given}`),
    parameter.map((given) => `/admin/customers?${given}`),
  )
  const admin = request('admin', fc.constantFrom('GET', 'POST', 'DELETE'), target, {
    headers: fc.constant([['authorization', `Bearer ${adminToken}`]]),
    body: fc.oneof({ weight: 3, arbitrary: body }, { weight: 1, arbitrary: mutated(body) }),
  })
  return fc.oneof(
    { weight: 10, arbitrary: chat },
    { weight: 4, arbitrary: upload },
    { weight: 1, arbitrary: leaving },
    { weight: 2, arbitrary: query },
    { weight: 3, arbitrary: anywhere },
    { weight: 2, arbitrary: admin },
  )
}
