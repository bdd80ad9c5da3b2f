import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ClientConnection } from '../../../src/host/front/client-connection.ts'
import { ConnectionTable, type Stage } from '../../../src/host/front/connection-table.ts'
import { PublicListener } from '../../../src/host/front/public-listener.ts'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'
import { listen } from '../../support/listen.ts'

const closing: (Socket | Server)[] = []
/** The stages in which the front has counted its connections. */
let stages: Stage[]
let front: PublicListener
let port: number

class WatchedTable extends ConnectionTable<ClientConnection> {
  override move(connection: ClientConnection, stage: Stage): boolean {
    stages.push(stage)
    return super.move(connection, stage)
  }
}

async function openFront(secure: boolean): Promise<void> {
  const table = new WatchedTable({ connections: 9, relayed: 9, perSource: 9 }, () => 0)
  const tools = {
    table,
    now: () => 0,
    sourceAddress: () => '127.0.0.1',
    times: { lingerMs: 60_000, unreadMs: 60_000 },
    unread: () => {},
  }
  front = new PublicListener(tools, secure)
  port = await front.listen('127.0.0.1', 0, false)
}

beforeEach(() => {
  stages = []
  return openFront(true)
})
afterEach(() => {
  // Else it would offer those who wait to a worker that is not there for as long as the process runs.
  front.relayTo(undefined)
  for (const one of closing.splice(0)) {
    if ('destroy' in one) one.destroy()
    else one.close()
  }
})

/** In place of a worker: each connection it gets. */
class TestWorker {
  readonly #sockets: Socket[] = []
  #came = Promise.withResolvers<void>()

  /** Starts one, and has the front relay to it. */
  static async start(): Promise<TestWorker> {
    const worker = new TestWorker()
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      closing.push(socket)
      socket.on('error', () => {})
      worker.#sockets.push(socket)
      worker.#came.resolve()
    })
    closing.push(server)
    front.relayTo(await listen(server))
    return worker
  }

  get connections(): number {
    return this.#sockets.length
  }

  /** The next connection that nobody has asked for yet. */
  async next(): Promise<Socket> {
    await this.#came.promise
    this.#came = Promise.withResolvers()
    const last = this.#sockets.at(-1)
    if (last === undefined) throw new Error('no connection came')
    return last
  }
}

async function client(first: Buffer): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  closing.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(first)
  return socket
}

/** Reads until it has so many bytes. */
async function read(socket: Socket, length: number): Promise<Buffer> {
  const parts: Buffer[] = []
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const take = (part: Buffer) => {
    parts.push(part)
    const whole = Buffer.concat(parts)
    if (whole.length < length) return
    socket.off('data', take)
    resolve(whole)
  }
  socket.on('data', take)
  return promise
}

/** What a client has read until its connection ended, however it ended. */
async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString()))
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

function record(type: number, length: number): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), Buffer.alloc(length)])
}

const HELLO = record(22, 1_700)
const FINISHED = record(23, 53)

const WAYS_TO_GO: [string, (socket: Socket) => unknown][] = [
  ['ends', (socket) => socket.end()],
  ['breaks off', (socket) => socket.resetAndDestroy()],
]

describe('a client whose TLS handshake no worker has answered', () => {
  test.each(WAYS_TO_GO)('is handed to the next worker when its own %s', async (_, go) => {
    const old = await TestWorker.start()
    const asking = await client(HELLO.subarray(0, 100))
    const first = await old.next()
    await read(first, 100)
    asking.write(HELLO.subarray(100))
    await read(first, HELLO.length - 100)
    front.relayTo(undefined)
    go(first)
    await expect.poll(() => stages).toEqual(['handshaking', 'held'])
    const second = await (await TestWorker.start()).next()
    expect((await read(second, HELLO.length)).equals(HELLO)).toBe(true)
    second.write('answer')
    expect((await read(asking, 6)).toString()).toBe('answer')
    asking.write(FINISHED)
    expect((await read(second, FINISHED.length)).equals(FINISHED)).toBe(true)
    expect(stages).toEqual(['handshaking', 'held', 'handshaking', 'established'])
  })

  test('finishes it with the next worker', async () => {
    const old = await TestWorker.start()
    const asking = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })
    closing.push(asking)
    const first = await old.next()
    await once(first, 'data')
    front.relayTo(undefined)
    first.resetAndDestroy()
    const { certPem: cert, keyPem: key } = (await makeLinkCertificates(Date.now())).server
    const next = createTlsServer({ cert, key }, (socket) => void socket.pipe(socket))
    closing.push(next)
    front.relayTo(await listen(next))
    asking.write('hello')
    expect((await read(asking, 5)).toString()).toBe('hello')
  })

  test('is handed on once: a second worker that goes without an answer ends it', async () => {
    const worker = await TestWorker.start()
    const asking = await client(HELLO)
    const ended = readAll(asking)
    const first = await worker.next()
    first.end()
    const second = await worker.next()
    second.end()
    expect(await ended).toBe('')
    expect(worker.connections).toBe(2)
  })

  test('is not handed on when it has left, and is gone for its worker at once', async () => {
    const worker = await TestWorker.start()
    const leaving = await client(HELLO)
    const first = await worker.next()
    const ended = once(first, 'error')
    leaving.end()
    expect(await ended).toMatchObject([{ code: 'ECONNRESET' }])
    expect(await readAll(leaving)).toBe('')
    expect(worker.connections).toBe(1)
  })
})

describe('a client is not handed to another worker', () => {
  /** Has its worker go, after `before`, and answers with what the client reads. */
  async function deserted(
    first: Buffer,
    before: (worker: Socket, asking: Socket) => unknown = () => {},
  ): Promise<string> {
    const worker = await TestWorker.start()
    const asking = await client(first)
    const text = readAll(asking)
    const socket = await worker.next()
    await read(socket, first.length)
    await before(socket, asking)
    socket.end()
    const said = await text
    expect(worker.connections).toBe(1)
    return said
  }

  test('once its handshake was answered', async () => {
    expect(await deserted(HELLO, (worker) => worker.write('part'))).toBe('part')
  })

  test('once it has sent a record of application data, which its worker may have acted on', async () => {
    const go = async (worker: Socket, asking: Socket) => {
      asking.write(FINISHED)
      await read(worker, FINISHED.length)
    }
    expect(await deserted(HELLO, go)).toBe('')
    expect(await deserted(Buffer.concat([HELLO, FINISHED]))).toBe('')
  })

  test('once it has sent more than 16 KiB', async () => {
    const go = async (worker: Socket, asking: Socket) => {
      asking.write(record(22, 15_000))
      await read(worker, 15_005)
    }
    expect(await deserted(HELLO, go)).toBe('')
  })

  test('if it does not speak TLS', async () => {
    expect(await deserted(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toBe('')
  })

  test('over plain HTTP, where its worker may have begun with the request', async () => {
    await openFront(false)
    expect(await deserted(Buffer.from('POST / HTTP/1.1\r\n\r\n'))).toBe('')
    expect(await deserted(HELLO)).toBe('')
  })
})
