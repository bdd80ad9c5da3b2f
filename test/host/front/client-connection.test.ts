import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  ClientConnection,
  type ConnectionLimits,
} from '../../../src/host/front/client-connection.ts'

const closing: (Socket | Server)[] = []

afterEach(() => {
  for (const one of closing.splice(0)) {
    if ('destroy' in one) one.destroy()
    else one.close()
  }
})

async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    closing.push(socket)
    socket.on('error', () => {})
    onConnection(socket)
  })
  closing.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

/** A client that has sent a byte through a connection of the front to a worker. */
async function relayed(given: Partial<ConnectionLimits> = {}) {
  const limits = { lingerMs: 60_000, unreadMs: 60_000, ...given }
  let unread = 0
  const fromWorker = Promise.withResolvers<Socket>()
  const port = await listen(fromWorker.resolve)
  const accepted = Promise.withResolvers<ClientConnection>()
  const front = await listen((socket) => {
    const connection = new ClientConnection(socket, '192.0.2.1', 0, limits)
    connection.onFirstBytes((first) => {
      const events = { refused: () => {}, unread: () => void (unread += 1) }
      connection.relay({ port, localAddress: '127.0.0.1' }, first, events)
      accepted.resolve(connection)
    })
  })
  const client = connect({ port: front, host: '127.0.0.1', allowHalfOpen: true })
  closing.push(client)
  client.on('error', () => {})
  client.write('?')
  const worker = await fromWorker.promise
  // With it the front relays both ways.
  const [first]: unknown[] = await once(worker, 'data')
  worker.pause()
  worker.unshift(first)
  const { socket } = await accepted.promise
  /** How often it was said that the client did not read. */
  const timesUnread = () => unread
  return { client, worker, atFront: socket, timesUnread }
}

test('bytes arrive unchanged both ways, however large', async () => {
  const { client, worker } = await relayed()
  const answer = Buffer.alloc(5_000_001, 'an answer of many reads ')
  const request = Buffer.alloc(3_000_001, 'a request of many reads ')
  const taken = {
    worker: readTo(worker, request.length + 1),
    client: readTo(client, answer.length),
  }
  worker.write(answer)
  client.write(request)
  expect((await taken.client).equals(answer)).toBe(true)
  expect((await taken.worker).equals(Buffer.concat([Buffer.from('?'), request]))).toBe(true)
})

test('a client that does not read slows the worker down and gets everything when it reads again', async () => {
  const { client, worker, atFront } = await relayed()
  client.pause()
  const answer = Buffer.alloc(64 * 1024 * 1024, 'more than all buffers hold ')
  let written = false
  worker.write(answer, () => (written = true))
  await expect.poll(() => atFront.writableNeedDrain, { timeout: 30_000 }).toBe(true)
  expect(written).toBe(false)
  expect(atFront.writableLength).toBeLessThan(1024 * 1024)
  expect((await readTo(client, answer.length)).equals(answer)).toBe(true)
})

describe('a client that takes nothing while bytes wait for it', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  async function heldBack() {
    const parts = await relayed()
    parts.client.pause()
    const answer = Buffer.alloc(64 * 1024 * 1024, 'more than all buffers hold ')
    parts.worker.write(answer)
    await becomesTrue(() => parts.atFront.writableNeedDrain)
    return { ...parts, answer }
  }

  test('is closed when its time is over, and for the worker that is a reset', async () => {
    const { worker, atFront, timesUnread } = await heldBack()
    const { promise: reset, resolve } = Promise.withResolvers<string | undefined>()
    worker.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
    vi.advanceTimersByTime(59_999)
    expect(atFront.destroyed).toBe(false)
    vi.advanceTimersByTime(1)
    expect(atFront.destroyed).toBe(true)
    expect(await reset).toMatch(/^(ECONNRESET|EPIPE)$/)
    expect(timesUnread()).toBe(1)
  })

  test('is not closed once it reads on', async () => {
    const { client, worker, atFront, answer, timesUnread } = await heldBack()
    vi.advanceTimersByTime(59_999)
    expect((await readTo(client, answer.length)).equals(answer)).toBe(true)
    await becomesTrue(() => atFront.writableLength === 0 && !atFront.writableNeedDrain)
    vi.advanceTimersByTime(60_000)
    expect(atFront.destroyed).toBe(false)
    client.removeAllListeners('data')
    worker.write('on')
    expect((await readTo(client, 2)).toString()).toBe('on')
    expect(timesUnread()).toBe(0)
  })
})

test('a client that keeps its side open and is idle after the worker has ended is closed', async () => {
  const { client, worker, atFront } = await relayed({ lingerMs: 50 })
  const closed = once(atFront, 'close')
  client.resume()
  worker.end('the whole answer')
  await closed
  expect(atFront.bytesWritten).toBe('the whole answer'.length)
})

test('a client that has ended its side and does not take what waits for it is closed', async () => {
  const { client, worker, atFront } = await relayed({ lingerMs: 50 })
  const closed = once(atFront, 'close')
  client.pause()
  // As little as the front takes without waiting for the client.
  const part = Buffer.alloc(4 * 1024)
  while (atFront.writableLength === 0) {
    worker.write(part)
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(atFront.writableNeedDrain).toBe(false)
  client.end()
  await closed
})

test('a client stays as long as the worker has not ended, however idle it is', async () => {
  const { client, worker, atFront } = await relayed({ lingerMs: 1 })
  const later = await relayed({ lingerMs: 1 })
  worker.write('the beginning')
  await once(client, 'data')
  // Another connection has lived through its end meanwhile.
  later.worker.end()
  later.client.resume()
  await once(later.atFront, 'close')
  expect(atFront.destroyed).toBe(false)
})

test('the end of a client is a reset for the worker', async () => {
  const { client, worker } = await relayed()
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  worker.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
  worker.resume()
  client.end()
  expect(await promise).toBe('ECONNRESET')
})

/** By turns of the event loop: waits of the test library would let the time of faked timers pass. */
async function becomesTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

async function readTo(socket: Socket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let read = 0
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    read += chunk.length
    if (read >= length) resolve(Buffer.concat(chunks))
  })
  socket.resume()
  return promise
}
