import { rawRequest, RawClient } from '../support/raw-client.ts'
import { sound } from './answers.ts'
import { ask, PROMPT } from './ask.ts'
import { family, type AnyFamily, type Trial } from './trial.ts'
import { openWorld, type World } from './world.ts'

/** Deliberately hostile requests. After each the router must still serve. */

const MODEL = 'sound'
const MIB = 1024 * 1024
const CHAT = '/v1/chat/completions'
const MESSAGES = `"messages": [{"role": "user", "content": "${PROMPT}"}]`

/** A chat body with further members. */
function chat(members: string): string {
  return `{"model": "${MODEL}", ${MESSAGES}, ${members}}`
}

const OK = chat('"user": "x"')

interface Hostile {
  readonly name: string
  /** The request as bytes, for a key. */
  readonly request: (key: string) => string | Uint8Array
  /** Status and code, or `closed`; `|` between forms that are both right. */
  readonly expected: string
}

function post(
  name: string,
  body: string,
  expected: string,
  headers: Readonly<Record<string, string | number>> = {},
): Hostile {
  return { name, expected, request: (key) => posted(key, CHAT, body, headers) }
}

function posted(
  key: string,
  path: string,
  body: string,
  headers: Readonly<Record<string, string | number>> = {},
): string {
  const length = { 'content-length': Buffer.byteLength(body, 'latin1') }
  return rawRequest('POST', path, { authorization: `Bearer ${key}`, ...length, ...headers }, body)
}

function at(target: string, expected: string, method = 'POST'): Hostile {
  return {
    name: `${method} ${target.slice(0, 60)}`,
    expected,
    request: (key) =>
      method === 'POST'
        ? posted(key, target, OK)
        : rawRequest(method, target, { authorization: `Bearer ${key}` }),
  }
}

/** A request under the name of a host that none can have. */
function withHost(host: string, target: string, expected: string, method = 'GET'): Hostile {
  const request = (key: string) =>
    rawRequest(method, target, { host, authorization: `Bearer ${key}` })
  return { name: `${method} ${target} at ${host}`, expected, request }
}

const INVALID = '400 invalid_request_error'
const TOO_LARGE = '413 request_too_large'
const NOT_THERE = '404 not_found'
const UNSUPPORTED = '404 unsupported_endpoint'
const SERVED = '200'

const JSON_TRICKS: readonly Hostile[] = [
  post('duplicate keys: the last counts', `{"model": "nope", ${OK.slice(1)}`, SERVED),
  post('duplicate keys in other spellings', `{"mod\\u0065l": "nope", ${OK.slice(1)}`, SERVED),
  post('duplicate messages', `{"messages": 7, ${OK.slice(1)}`, SERVED),
  post('brackets 100,000 deep', chat(`"metadata": ${'['.repeat(1e5)}${']'.repeat(1e5)}`), INVALID),
  post('brackets 100,000 deep, unclosed', chat(`"stop": ${'['.repeat(1e5)}`).slice(0, -1), INVALID),
  post(
    'objects 100,000 deep in a message',
    `{"model": "${MODEL}", "messages": ${'[{"content":'.repeat(1e5)}`,
    TOO_LARGE,
  ),
  post('a seed of 100,000 digits', chat(`"seed": ${'9'.repeat(1e5)}`), SERVED),
  post('a temperature of 1e999', chat('"temperature": 1e999'), INVALID),
  post('max_tokens of 1e999', chat('"max_tokens": 1e999'), INVALID),
  post('max_tokens of 9007199254740993', chat('"max_tokens": 9007199254740993'), INVALID),
  post('n of 1e308', chat('"n": 1e308'), '402 insufficient_balance'),
  post(
    'a lone surrogate in a message',
    `{"model": "${MODEL}", "messages": [{"role": "user", "content": "\\ud800"}]}`,
    SERVED,
  ),
  post('a lone surrogate as the model', `{"model": "\\udc00", ${MESSAGES}}`, '404 model_not_found'),
  post('a byte that is no UTF-8', chat('"user": "\u00ff"'), INVALID),
  post('a zero byte in a text', chat('"user": "\u0000"'), INVALID),
  post('a byte order mark', `\u00ef\u00bb\u00bf${OK}`, INVALID),
  post('two values', `${OK}{}`, INVALID),
  post('nothing', '', INVALID),
  post('a null', 'null', INVALID),
  post('prototypes', `{"__proto__": {"model": "x"}, "constructor": 1, ${OK.slice(1)}`, SERVED),
  post(
    'a model named like a member of every object',
    `{"model": "__proto__", ${MESSAGES}}`,
    '404 model_not_found',
  ),
  post('a failover named like one', chat('"failover": ["constructor"]'), '404 model_not_found'),
  post('an effort named like one', chat('"reasoning": "toString"'), INVALID),
]

const OVERSIZED: readonly Hostile[] = [
  post(
    'a body of 11 MiB',
    chat(`"user": "${'u'.repeat(11 * MIB)}"`),
    '413 request_too_large|closed',
  ),
  {
    name: 'a body of 11 MiB of undeclared length',
    expected: '413 request_too_large|closed',
    request: (key) => {
      const head = { authorization: `Bearer ${key}`, 'transfer-encoding': 'chunked' }
      const size = 11 * MIB
      return rawRequest(
        'POST',
        CHAT,
        head,
        `${size.toString(16)}\r\n${'u'.repeat(size)}\r\n0\r\n\r\n`,
      )
    },
  },
  post('a declared length of 10^30', OK, '413 request_too_large|400|closed', {
    'content-length': `1${'0'.repeat(30)}`,
  }),
  post('a negative length', OK, '400|closed', { 'content-length': -5 }),
  post('two ways to tell the length', OK, '400 invalid_request_error|400|501|closed', {
    'transfer-encoding': 'chunked',
  }),
  post(
    'a million messages',
    `{"model": "${MODEL}", "messages": [${'{},'.repeat(1e6)}{}]}`,
    TOO_LARGE,
  ),
  post('a hundred thousand failovers', chat(`"failover": [${'"x",'.repeat(1e5)}"x"]`), INVALID),
  post(
    'a model name of a megabyte',
    `{"model": "${'m'.repeat(MIB)}", ${MESSAGES}}`,
    '400 invalid_request_error',
  ),
  post('a key of 100 kB', OK, '401 unauthorized|431|400|closed', {
    authorization: `Bearer ${'k'.repeat(1e5)}`,
  }),
  post('one header of a megabyte', OK, '431|400|closed', { 'x-big': 'b'.repeat(MIB) }),
  {
    name: 'a hundred thousand headers',
    expected: '431|400|closed',
    request: (key) => {
      const many = Object.fromEntries(
        Array.from({ length: 1e5 }, (_, i) => [`x-${i}`, 'value '.repeat(4)]),
      )
      return posted(key, CHAT, OK, many)
    },
  },
  { ...at(`/${'a'.repeat(MIB)}`, '431|414|400|closed'), name: 'a path of a megabyte' },
  { ...at(`${CHAT}?${'a=b&'.repeat(1_000)}`, SERVED), name: 'a thousand query parameters' },
  post('a compressed body', OK, INVALID, { 'content-encoding': 'gzip' }),
  post('a wait for 100-continue', OK, `${SERVED}|417|400`, { expect: '100-continue' }),
]

const PATHS: readonly Hostile[] = [
  at('/v1//chat/completions', UNSUPPORTED),
  at('//v1/chat/completions', NOT_THERE),
  at('/V1/chat/completions', NOT_THERE),
  at('/v1/chat/completions/', `${SERVED}|${UNSUPPORTED}`),
  at('/v1/chat/completions%00', UNSUPPORTED),
  at('/v1/chat%2fcompletions', UNSUPPORTED),
  at('/v1/./chat/../chat/completions', SERVED),
  at('/v1/../admin/customers', '401 unauthorized', 'GET'),
  at('/v1/models/..%2f..%2fadmin%2fcustomers', '404 model_not_found', 'GET'),
  at('/v1/receipts/%E0%A4%A', '400 invalid_parameter', 'GET'),
  at('/v1/receipts/%00', NOT_THERE, 'GET'),
  at("/v1/receipts/'%20OR%201=1--", NOT_THERE, 'GET'),
  at('/attestation/../../etc/passwd', NOT_THERE, 'GET'),
  at('/admin/customers/__proto__', '401 unauthorized', 'GET'),
  at('http://elsewhere.test/v1/models', `${SERVED}|${NOT_THERE}|400`, 'GET'),
  at('*', `${NOT_THERE}|400|204|closed`, 'OPTIONS'),
  at(CHAT, '405 method_not_allowed|400|501|closed', 'TRACE'),
  at(CHAT, '405 method_not_allowed|400|501|closed', 'PROPFIND'),
  at(CHAT, '400|501|closed', 'NONSENSE'),
  withHost('[::', '/v1/models', INVALID),
  withHost('[::', '/nothing', INVALID),
  withHost('a:b', '/healthz', INVALID),
  withHost('127.0.0.1:99999', '/v1/models?a=b', INVALID),
  withHost('a/v1/models?', '/nothing', INVALID),
  withHost('a#', '/v1/models', INVALID),
  withHost('a@b', '/v1/models', INVALID),
  withHost('a\\b', '/v1/models', INVALID),
  withHost('', '/x/v1/models', `${INVALID}|400`),
  withHost('127.0.0.1:1', '*', `${INVALID}|${NOT_THERE}|204`, 'OPTIONS'),
  { name: 'no HTTP at all', expected: '400|closed', request: () => 'HELO router\r\n\r\n' },
  {
    name: 'a TLS hello in the clear',
    expected: '400|closed',
    request: () => Uint8Array.of(22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 13, 10, 13, 10),
  },
]

/** Status and code of a raw answer; of a success the status alone, of others the code where they have one. */
function summary(received: string): string {
  const status = /^HTTP\/1\.1 ([2-5]\d\d)/m.exec(received)?.[1]
  if (status === undefined) return 'closed'
  const code = /"code":"(\w+)"/.exec(received)?.[1]
  return code === undefined ? status : `${status} ${code}`
}

function trialOf({ name, request, expected }: Hostile): Trial<World> {
  return {
    name,
    expected: `${expected}, and serves on`,
    run: async (world) => {
      const customer = await world.newCustomer()
      const client = await RawClient.connect(world.stack.local.base_url)
      client.send(request(customer.key))
      await client.hears('\r\n\r\n')
      await client.hears('"code"', 200)
      if (client.received.startsWith('HTTP/1.1 100')) await client.hears('HTTP/1.1 2')
      const seen = summary(client.received)
      client.reset()
      const repeats = client.received.includes(PROMPT) ? ', repeats the prompt' : ''
      const after = await ask(world, customer, { model: MODEL, stream: false })
      const alive = after.words.startsWith('200 ') ? 'serves on' : `then ${after.words}`
      // One of several right answers is told as the whole list, so that the table compares equal.
      const right = expected.split('|').includes(seen)
      return `${right ? expected : seen}${repeats}, and ${alive}`
    },
  }
}

export const HOSTILE_FAMILY: AnyFamily = family({
  name: 'hostile input',
  trials: [...JSON_TRICKS, ...OVERSIZED, ...PATHS].map(trialOf),
  atATime: 6,
  open: () => openWorld([{ model: MODEL, at: 'alpha', script: sound }]),
  close: (world) => world.close(),
})
