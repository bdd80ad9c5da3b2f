import { describe, expect, it } from 'vitest'
import { RequestReader, type LinkRequest } from '../../src/ledger/request-reader.ts'

const LIMITS = { maxHeadBytes: 200, maxBodyBytes: 50 }

const POST = 'POST /v1/operate HTTP/1.1\r\nHost: ledger\r\nContent-Length: 5\r\n\r\nh\u00e9llo'

const GET = 'GET /v1/health HTTP/1.1\r\nconnection: keep-alive, Close\r\n\r\n'

/** Reads a text that arrives in these pieces; latin1, so that a character is a byte. */
function read(pieces: readonly string[], limits = LIMITS): readonly (LinkRequest | undefined)[] {
  const reader = new RequestReader(limits)
  return pieces.map((piece) => reader.push(Buffer.from(piece, 'latin1')))
}

function textOf({ path, body, isLast }: LinkRequest): readonly unknown[] {
  return [path, body.toString('latin1'), isLast]
}

function resultOf(text: string): string {
  try {
    const [request] = read([text])
    return request === undefined ? 'nothing' : `${request.path} ${request.body.length}`
  } catch (error) {
    return String(error)
  }
}

describe('the reader of requests', () => {
  it.each([POST, GET])('reads the same from every two pieces (%#)', (text) => {
    const whole = read([text]).map((request) => request && textOf(request))
    expect(whole).toEqual([
      text === POST ? ['/v1/operate', 'h\u00e9llo', false] : ['/v1/health', '', true],
    ])
    for (let at = 1; at < text.length; at += 1) {
      const [first, second] = read([text.slice(0, at), text.slice(at)])
      expect(first).toBeUndefined()
      expect(second && textOf(second)).toEqual(whole[0])
    }
  })

  it('reads one byte at a time, and the next request after it', () => {
    const reader = new RequestReader(LIMITS)
    const requests = (POST + GET + POST)
      .split('')
      .flatMap((byte) => reader.push(Buffer.from(byte, 'latin1')) ?? [])
    expect(requests.map(({ path }) => path)).toEqual(['/v1/operate', '/v1/health', '/v1/operate'])
  })

  it('reads a body as long as the limit', () => {
    const text = `POST / HTTP/1.1\r\nContent-Length: 50\r\n\r\n${'x'.repeat(50)}`
    expect(read([text])[0]?.body).toHaveLength(50)
  })

  it.each([
    ['another method', 'PUT / HTTP/1.1\r\n\r\n', 'no request line'],
    ['another version', 'GET / HTTP/1.0\r\n\r\n', 'no request line'],
    ['a target with a host', 'GET http://a/ HTTP/1.1\r\n\r\n', 'no request line'],
    ['two blanks', 'GET  / HTTP/1.1\r\n\r\n', 'no request line'],
    ['an empty head', '\r\n\r\n', 'no request line'],
    ['a name before a blank', 'GET / HTTP/1.1\r\nname : x\r\n\r\n', 'no header field'],
    ['a folded line', 'GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n', 'no header field'],
    ['a bare line feed', 'GET / HTTP/1.1\r\na: b\nContent-Length: 5\r\n\r\n', 'no header field'],
    ['a bare carriage return', 'GET / HTTP/1.1\r\na: b\rc\r\n\r\n', 'no header field'],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n',
      'a length',
    ],
    ['a length with a sign', 'POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n', 'a length'],
    ['a list of lengths', 'POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n', 'a length'],
    ['a hexadecimal length', 'POST / HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n', 'a length'],
    ['an empty length', 'POST / HTTP/1.1\r\nContent-Length:\r\n\r\n', 'a length'],
    ['chunks', 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n', 'another kind'],
    ['a wait for 100', 'POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n', 'another kind'],
    ['an upgrade', 'GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n', 'another kind'],
    ['a body over the limit', 'POST / HTTP/1.1\r\nContent-Length: 51\r\n\r\n', 'too large'],
    ['a head over the limit', `GET / HTTP/1.1\r\na: ${'x'.repeat(200)}`, 'without end'],
    ['a request right behind it', `${POST}${GET}`, 'after the end'],
  ])('refuses %s', (_what, text, message) => {
    expect(() => read([text])).toThrow(message)
  })

  it('takes a length between blanks', () => {
    expect(resultOf('POST / HTTP/1.1\r\nContent-Length:\t 2 \t\r\n\r\nab')).toBe('/ 2')
  })

  it('refuses a long line of blanks without trying every way to divide them', () => {
    const text = `GET / HTTP/1.1\r\na:${' '.repeat(10_000)}\u0001\r\n\r\n`
    const limits = { ...LIMITS, maxHeadBytes: 16_384 }
    expect(() => read([text], limits)).toThrow('a line that is no header field')
  })

  it('takes no bytes at random for a request', () => {
    // A fixed sequence: the numbers of Park and Miller.
    let seed = 7
    const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
    const alphabet = 'GETPOS /v1.HTP\r\n:Contentlgh-058\u0000\u00ff\t'
    for (let round = 0; round < 3_000; round += 1) {
      const text = POST.split('')
      for (let change = 0; change <= round % 4; change += 1) {
        text[next(text.length)] = alphabet[next(alphabet.length)] ?? ''
      }
      // One request, none yet, or one of its own errors.
      expect(resultOf(text.join(''))).toMatch(/^(\/[!-~]* 0?[0-5]?[0-9]|nothing|Error: .+)$/)
    }
  })
})
