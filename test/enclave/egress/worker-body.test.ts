import {
  Agent,
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { chunkedBody, type WorkerBody } from '../../../src/enclave/egress/worker-body.ts'
import { listen } from '../../support/listen.ts'

const servers: Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

/** A server that answers each request with a body. */
async function serve(answer: (body: WorkerBody, response: ServerResponse) => void) {
  const server = createServer((_request, response) => {
    response.writeHead(200)
    response.flushHeaders()
    answer(chunkedBody(response), response)
  })
  servers.push(server)
  return listen(server)
}

function open(port: number, agent: Agent | false = false): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, agent }, resolve).on('error', reject).end()
  })
}

async function read(answer: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(part)
  return Buffer.concat(parts)
}

it('a body brings its pieces as they were, of every length', async () => {
  const pieces = [1, 15, 16, 4_095, 65_536, 1_048_577].map((length) => Buffer.alloc(length, length))
  const port = await serve((body) => {
    for (const piece of pieces) body.write(piece)
    body.end()
  })
  expect((await read(await open(port))).equals(Buffer.concat(pieces))).toBe(true)
})

it('a body leaves its connection to the next answer, and no listener on it', async () => {
  const sockets: Socket[] = []
  const listeners: number[] = []
  const closed: Promise<void>[] = []
  const port = await serve((body, { socket }) => {
    if (socket !== null) {
      sockets.push(socket)
      listeners.push(socket.listenerCount('drain'))
    }
    closed.push(new Promise((resolve) => body.once('close', () => resolve())))
    body.write(Buffer.from('an answer'))
    body.end()
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let call = 0; call < 3; call++) {
    expect(String(await read(await open(port, agent)))).toBe('an answer')
    await closed[call]
  }
  agent.destroy()
  expect(new Set(sockets).size).toBe(1)
  expect(new Set(listeners).size).toBe(1)
})

it('a body says when its reader takes no more, and when it does again', async () => {
  const drained = Promise.withResolvers<void>()
  const full = Promise.withResolvers<void>()
  let sent = 0
  const piece = Buffer.alloc(65_536, 7)
  const port = await serve((body) => {
    body.on('drain', () => {
      drained.resolve()
      body.end()
    })
    do sent += piece.length
    while (body.write(piece))
    full.resolve()
  })
  const answer = await open(port)
  await full.promise
  const received = await read(answer)
  await drained.promise
  expect(received.length).toBe(sent)
})

it('a body is destroyed when its reader leaves', async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const port = await serve((body) => {
    body.on('error', () => {})
    body.once('close', () => {
      body.write(Buffer.from('too late'))
      resolve(body.destroyed)
    })
    body.write(Buffer.from('begun'))
  })
  const answer = await open(port)
  answer.destroy()
  expect(await promise).toBe(true)
})

it('a body has no chunks for a reader of HTTP/1.0', async () => {
  const port = await serve((body) => {
    body.write(Buffer.from('one, '))
    body.write(Buffer.from('two'))
    body.end()
  })
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.0\r\n\r\n')
  let text = ''
  for await (const part of socket) text += String(part)
  expect(text.split('\r\n\r\n')[1]).toBe('one, two')
})

it('comes after the answer before it, where requests are pipelined', async () => {
  const bodies: WorkerBody[] = []
  const bothAsked = Promise.withResolvers<void>()
  const port = await serve((body) => {
    bodies.push(body)
    if (bodies.length === 2) bothAsked.resolve()
  })
  const socket = connect(port, '127.0.0.1')
  const asked = 'GET / HTTP/1.1\r\nhost: a\r\n'
  socket.write(`${asked}\r\n${asked}connection: close\r\n\r\n`)
  await bothAsked.promise
  for (const [index, body] of [...bodies.entries()].toReversed()) {
    body.write(Buffer.from(`answer ${index}`))
    body.end()
  }
  let text = ''
  for await (const part of socket) text += String(part)
  const end = '\r\n0\r\n\r\n'
  expect(text.match(/HTTP\/1\.1 200|answer \d|\r\n0\r\n\r\n/g)).toEqual(
    [0, 1].flatMap((index) => ['HTTP/1.1 200', `answer ${index}`, end]),
  )
})

it('is closed when its reader closes the connection on its side, whatever is written then', async () => {
  const closed = Promise.withResolvers<void>()
  const port = await serve((body, { socket }) => {
    body.once('close', () => closed.resolve())
    socket?.once('end', () => void body.write(Buffer.from('too late')))
  })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.resume()
  socket.end('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  await expect(closed.promise).resolves.toBeUndefined()
})
