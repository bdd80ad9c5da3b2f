/** Answers that no sound provider gives: each a name and the bytes of one answer. */

export interface HostileAnswer {
  readonly name: string
  readonly bytes: string
}

const chunked = 'transfer-encoding: chunked\r\n'
const head = (line: string, headers = '') => `${line}\r\n${headers}\r\n`
const OK = 'HTTP/1.1 200 OK'
const body = (headers: string, rest = '') => `${head(OK, headers)}${rest}`

/** On one line, and not too long for one. */
const shown = (text: string) => JSON.stringify(text.slice(0, 40))

const STATUS_LINES = [
  '000',
  '001',
  '099',
  '100',
  '101',
  '102',
  '103',
  '199',
  '600',
  '700',
  '999',
  '1000',
  '42',
  '2',
  '-1',
  '',
  'abc',
  '20O',
  '200.5',
  '+200',
  '0200',
  '２００',
].map((status) => ({
  name: `status ${status}`,
  bytes: head(`HTTP/1.1 ${status} X`, 'content-length: 0\r\n'),
}))

const VERSIONS = [
  'HTTP/0.9',
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'HTTP/9.9',
  'HTTPS/1.1',
  'ICY',
  'http/1.1',
  '',
].map((version) => ({
  name: `version ${version}`,
  bytes: head(`${version} 200 OK`, 'content-length: 0\r\n'),
}))

const HEADER_LINES = [
  ': no name',
  'no colon',
  ' folded',
  'a b: c',
  'x\u0000y: z',
  'x: \u0000',
  'x: \u0001\u0002',
  'x: \u007f',
  'x: \u00e4\u00f6\u00ff',
  'x: a\rb',
  'x: a\nb',
  'x:',
  `x: ${'v'.repeat(20_000)}`,
  `${'n'.repeat(20_000)}: v`,
  '__proto__: x',
  'constructor: x',
  'hasOwnProperty: x',
  'set-cookie: a\r\nset-cookie: b',
  'connection: close, x-cmr-evidence-sha256',
  'x-cmr-egress-error: provider_unproven',
  'x-cmr-evidence-sha256: 00',
  'date: never',
  'trailer: content-length',
  'upgrade: h2c\r\nconnection: upgrade',
  'keep-alive: timeout=-1',
  'keep-alive: timeout=99999999999999',
  'connection: \u0080',
  'content-length: -1',
  'content-length: 1e9',
  'content-length: 99999999999999999999',
  'content-length: 1\r\ncontent-length: 2',
  'content-length: 1, 1',
  'content-length: ',
  'content-length: 0x10',
  `content-length: 3\r\n${chunked.trim()}`,
  'transfer-encoding: gzip',
  'transfer-encoding: chunked, chunked',
  'transfer-encoding: identity',
  'transfer-encoding: \u000bchunked',
].map((line) => ({ name: `header ${shown(line)}`, bytes: body(`${line}\r\n`, 'abc') }))

const CHUNKS = [
  '',
  'zz\r\nabc\r\n',
  '-1\r\n',
  'ffffffffffffffff\r\nabc',
  'fffffffffffffffff\r\nabc',
  '3\r\nab',
  '3\r\nabcdef\r\n0\r\n\r\n',
  '3\nabc\n0\n\n',
  '3 ;x=y\r\nabc\r\n0\r\n\r\n',
  `3;${'e'.repeat(20_000)}\r\nabc\r\n0\r\n\r\n`,
  '3\r\nabc0\r\n\r\n',
  '0\r\n',
  '0x3\r\nabc\r\n0\r\n\r\n',
  '0\r\nHTTP/1.1 200 OK\r\n\r\n',
  '3\r\nabc\r\n0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx',
].map((chunks) => ({ name: `chunks ${shown(chunks)}`, bytes: body(chunked, chunks) }))

const TRAILERS = [
  'x: y',
  'content-length: 5',
  'transfer-encoding: chunked',
  ': z',
  'no colon',
  'x: \u0000',
  '__proto__: x',
  'x-cmr-egress-error: internal',
  `x: ${'t'.repeat(20_000)}`,
].map((trailer) => ({
  name: `trailer ${shown(trailer)}`,
  bytes: body(`${chunked}trailer: x\r\n`, `3\r\nabc\r\n0\r\n${trailer}\r\n\r\n`),
}))

const INTERIM = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'
const ORDER = [
  { name: 'nothing', bytes: '' },
  { name: 'half a status line', bytes: 'HTTP/1.1 20' },
  { name: 'a thousand interim answers', bytes: INTERIM.repeat(1_000) },
  {
    name: 'interim answers, then one',
    bytes: `${INTERIM.repeat(3)}${body('content-length: 2\r\n', 'ok')}`,
  },
  {
    name: 'an upgrade with data behind',
    bytes: `${head('HTTP/1.1 101 Switching', 'upgrade: x\r\nconnection: upgrade\r\n')}data`,
  },
  {
    name: 'an upgrade, then an answer',
    bytes: `${head('HTTP/1.1 101 Switching', 'upgrade: x\r\nconnection: upgrade\r\n')}${body('content-length: 0\r\n')}`,
  },
  { name: 'a 204 with a body', bytes: `${head('HTTP/1.1 204 No', 'content-length: 3\r\n')}abc` },
  { name: 'a 304 with chunks', bytes: `${head('HTTP/1.1 304 No', chunked)}3\r\nabc\r\n0\r\n\r\n` },
  {
    name: 'two thousand headers',
    bytes: body(Array.from({ length: 2_000 }, (_, i) => `x-${i}: y\r\n`).join('')),
  },
  { name: 'HTTP/2 frames', bytes: '\u0000\u0000\u0000\u0004\u0000\u0000\u0000\u0000\u0000' },
  {
    name: 'an answer behind the answer',
    bytes: `${body('content-length: 1\r\n', 'a')}${body('content-length: 1\r\n', 'b')}`,
  },
]

export const HOSTILE_ANSWERS: readonly HostileAnswer[] = [
  ...STATUS_LINES,
  ...VERSIONS,
  ...HEADER_LINES,
  ...CHUNKS,
  ...TRAILERS,
  ...ORDER,
]

const delta = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

/** Bodies of event streams, in chunks and up to the end of the connection. */
export const HOSTILE_STREAMS: readonly HostileAnswer[] = [
  'data: ',
  'data: {',
  'data: 1\n\n',
  'data: [DONE]\n\n',
  'data: {"error":{}}\n\n',
  '\u00ff\n\n',
  `${delta}data: {`,
  `${delta}data: null\n\n${delta}`,
  `${delta}data: {"error":{"code":429}}\n\n${delta}`,
  `${delta}data: [DONE]\n\n${delta}`,
  `${delta}: ${'c'.repeat(70_000)}\n\n`,
].flatMap((events) => [
  {
    name: `events ${shown(events)} in chunks`,
    bytes: body(chunked, `${events.length.toString(16)}\r\n${events}\r\n0\r\n\r\n`),
  },
  { name: `events ${shown(events)}`, bytes: body('', events) },
])

/** TLS records that are not what comes next: alerts of both levels, a renegotiation, a record that is too long. */
export const HOSTILE_RECORDS: readonly { readonly name: string; readonly bytes: Uint8Array }[] = [
  { name: 'a fatal alert in the clear', bytes: Uint8Array.of(21, 3, 3, 0, 2, 2, 40) },
  { name: 'a warning in the clear', bytes: Uint8Array.of(21, 3, 3, 0, 2, 1, 0) },
  { name: 'an alert of an unknown kind', bytes: Uint8Array.of(21, 3, 3, 0, 2, 9, 255) },
  { name: 'an empty alert', bytes: Uint8Array.of(21, 3, 3, 0, 0) },
  { name: 'a hello request', bytes: Uint8Array.of(22, 3, 3, 0, 4, 0, 0, 0, 0) },
  { name: 'a change of cipher', bytes: Uint8Array.of(20, 3, 3, 0, 1, 1) },
  {
    name: 'application data that no key fits',
    bytes: Uint8Array.of(23, 3, 3, 0, 20, ...Array<number>(20).fill(7)),
  },
  { name: 'a record that is too long', bytes: Uint8Array.of(23, 3, 3, 255, 255, 1, 2, 3) },
  { name: 'a record of no type', bytes: Uint8Array.of(99, 3, 3, 0, 1, 0) },
  { name: 'plain text', bytes: new TextEncoder().encode('HTTP/1.1 200 OK\r\n\r\n') },
]
