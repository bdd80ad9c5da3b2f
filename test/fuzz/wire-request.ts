import { connect } from 'node:net'

/** A request as bytes, with none of the care that HTTP libraries take. */
export interface WireRequest {
  readonly kind: string
  readonly method: string
  readonly target: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** The client leaves after so many bytes of the body, of which it has declared all. */
  readonly leavesAfter?: number
}

/** What came back, down to the end of the connection. */
export interface WireAnswer {
  /** 0: nothing came. */
  readonly status: number
  readonly head: string
  readonly body: string
  /** Whether the router took longer than any request may. */
  readonly hung: boolean
}

const HANG_MS = 20_000

/** Where to send it, and with which key unless the request brings a header of its own. */
export interface Target {
  readonly port: number
  readonly authorization: string
}

/** Sends one request over a connection of its own and reads until the router closes it. */
export async function sendOverWire(target: Target, request: WireRequest): Promise<WireAnswer> {
  const { promise, resolve } = Promise.withResolvers<WireAnswer>()
  const socket = connect({ host: '127.0.0.1', port: target.port })
  const parts: Buffer[] = []
  const end = (hung: boolean) => {
    clearTimeout(timer)
    socket.destroy()
    resolve(read(Buffer.concat(parts).toString('latin1'), hung))
  }
  const timer = setTimeout(() => end(true), HANG_MS)
  socket.on('error', () => end(false))
  socket.on('data', (data: Buffer) => parts.push(data))
  socket.on('end', () => end(false))
  socket.on('connect', () => {
    socket.write(Buffer.from(headOf(target, request), 'latin1'))
    const { body, leavesAfter } = request
    if (leavesAfter === undefined) return socket.write(body)
    socket.write(body.subarray(0, leavesAfter))
    return setTimeout(() => end(false), LEAVES_AFTER_MS)
  })
  return promise
}

/** Long enough for the router to have begun to read. */
const LEAVES_AFTER_MS = 5

function headOf({ authorization }: Target, { method, target, headers, body }: WireRequest): string {
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  const lines = [
    ['host', 'router.test'],
    ['connection', 'close'],
    ...(given.has('authorization') ? [] : [['authorization', authorization]]),
    ...(body.length === 0 ? [] : [['content-length', String(body.length)]]),
    ...headers,
  ]
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `${method} ${target} HTTP/1.1\r\n${text}\r\n`
}

function read(text: string, hung: boolean): WireAnswer {
  const at = text.indexOf('\r\n\r\n')
  const head = at < 0 ? text : text.slice(0, at)
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0)
  const rest = at < 0 ? '' : text.slice(at + 4)
  return { status, head: head.toLowerCase(), body: unchunked(head, rest), hung }
}

function unchunked(head: string, body: string): string {
  if (!/^transfer-encoding: *chunked/im.test(head)) return body
  let whole = ''
  let at = 0
  for (;;) {
    const lineEnd = body.indexOf('\r\n', at)
    const length = lineEnd < 0 ? 0 : Number.parseInt(body.slice(at, lineEnd), 16)
    if (!(length > 0)) return whole
    whole += body.slice(lineEnd + 2, lineEnd + 2 + length)
    at = lineEnd + 2 + length + 2
  }
}
