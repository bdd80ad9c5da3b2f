import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../../src/client/index.ts'
import {
  clientOf,
  newKeyPair,
  startFakeRouter,
  type FakeRouter,
} from '../../support/fake-router.ts'
import { listen } from '../../support/listen.ts'
import { makeWorld, type World } from '../../support/synthetic-world.ts'

/**
 * Connections that end or break off while the application does not read. Nothing that a peer or somebody on the path
 * sends may end the process: an uncaught exception fails this suite.
 */

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

const toClose: (() => unknown)[] = []
afterEach(async () => {
  for (const close of toClose.splice(0).toReversed()) await close()
})

/**
 * The client takes one piece ahead of an application that does not read, and Node holds four more of this size: all of
 * the answer has then come, and only its end is left.
 */
const PIECE = 'x'.repeat(16_384)
const PIECES = 5
const WHOLE = PIECE.repeat(PIECES)

async function routerThat(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<FakeRouter> {
  const host = await startFakeRouter(world, answer)
  toClose.push(() => host.close())
  return host
}

async function ask(router: Pick<FakeRouter, 'baseURL'>): Promise<Response> {
  const { options, deps } = clientOf(world, router)
  const client = createClient(options, deps)
  toClose.push(() => client.close())
  return client.fetch(`${router.baseURL}/v1/chat/completions`, { method: 'POST', body: '{}' })
}

async function sendInPieces(response: ServerResponse): Promise<void> {
  for (let sent = 0; sent < PIECES; sent++) {
    response.write(PIECE)
    await sleep(20)
  }
  response.end()
}

/** Long enough for everything that the peer has sent, and its end, to arrive. */
const lookAway = () => sleep(300)

describe('an application that reads slowly', () => {
  test.each([
    ['of a known length', { 'content-length': WHOLE.length }],
    ['up to the end of the connection', {}],
  ])('gets all of an answer %s after which the connection closes', async (_how, headers) => {
    const host = await routerThat((_request, response) => {
      response.useChunkedEncodingByDefault = false
      response.writeHead(200, { ...headers, connection: 'close' })
      void sendInPieces(response)
    })
    const answer = await ask(host)
    await lookAway()
    expect(await answer.text()).toBe(WHOLE)
  })

  test('gets an error where such a connection is reset, which anybody on the path can do', async () => {
    const host = await routerThat((_request, response) => {
      response.setHeader('connection', 'close')
      response.write(WHOLE.repeat(2))
    })
    const below = new Set<Socket>()
    const front = createTcpServer((client) => {
      below.add(client)
      client.on('error', () => {})
      client.pipe(connect(host.port, '127.0.0.1').on('error', () => {})).pipe(client)
    })
    toClose.push(() => front.close())
    const answer = await ask({ baseURL: `https://127.0.0.1:${await listen(front)}` })
    await lookAway()
    for (const client of below) client.resetAndDestroy()
    await lookAway()
    await expect(answer.text()).rejects.toThrow('terminated')
  })
})

test('a host that is not proven is read as it sends: a large compressed answer that ends the connection is refused', async () => {
  const { keyPem, certPem } = await newKeyPair()
  const compressed = gzipSync(randomBytes(3 * WHOLE.length))
  const server = createServer({ key: keyPem, cert: certPem }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\n\r\n')
      socket.end(compressed)
    })
  })
  toClose.push(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  for (let i = 0; i < 5; i++) {
    await expect(ask({ baseURL: `https://127.0.0.1:${address.port}` })).rejects.toMatchObject({
      code: 'attestation_refused',
      message: 'the router is not proven: published trust bundle: not UTF-8',
    })
  }
})
