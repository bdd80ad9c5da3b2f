import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { openFronts, type Fronts } from '../../../src/host/stack/fronts.ts'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'
import { errorOf } from '../../support/answers.ts'
import { listen } from '../../support/listen.ts'
import { getOverTls } from '../../support/serve.ts'
import { until } from '../../support/stack.ts'
import { standstill } from '../../support/standstill.ts'

const ANY = { host: '127.0.0.1', port: 0 }

let fronts: Fronts
let worker: Server | undefined

interface Further {
  readonly workers?: number
  readonly connectionsPerSource?: number
  readonly unreadSeconds?: number
  readonly unread?: (count: number) => void
}

async function open(further: Further = {}) {
  fronts = await openFronts({ http: ANY, https: ANY, workers: 1, log: () => {}, ...further })
  return fronts
}

afterEach(async () => {
  await fronts.close()
  worker?.close()
  worker = undefined
})

/** In place of a worker: reports every connection it gets. */
async function startWorker(
  serve: (socket: Socket) => void,
): Promise<{ http: number; https: number }> {
  worker = createServer({ allowHalfOpen: true }, serve)
  const port = await listen(worker)
  return { http: port, https: port }
}

/** Records of TLS as a client sends them at the beginning of a handshake and at its end. */
const HELLO = Buffer.from([22, 3, 3, 0, 1, 1])
const FINISHED = Buffer.from([23, 3, 3, 0, 1, 1])

const echo = (socket: Socket) => void socket.pipe(socket)

async function client(port = fronts.httpPort, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function heard(socket: Socket): Promise<string> {
  const [data]: unknown[] = await once(socket, 'data')
  return String(data)
}

describe('the front of a router', () => {
  test('lets clients wait while there is no worker, and then hands them over', async () => {
    await open()
    const waiting = await client()
    waiting.write('hello')
    await delay(100)
    fronts.of('worker').relayTo(await startWorker(echo))
    expect(await heard(waiting)).toBe('hello')
    waiting.write('again')
    expect(await heard(waiting)).toBe('again')
  })

  test('lets those who come wait when told so, while those who are served go on', async () => {
    await open()
    const ports = await startWorker(echo)
    fronts.of('worker').relayTo(ports)
    const served = await client()
    served.write('first')
    expect(await heard(served)).toBe('first')
    await fronts.of('worker').hold()
    const next = await client()
    next.write('second')
    served.write('more')
    expect(await heard(served)).toBe('more')
    expect(next.bytesRead).toBe(0)
    fronts.of('worker').relayTo(ports)
    expect(await heard(next)).toBe('second')
  })

  test('says that a worker can end when no TLS handshake with it is under way any more', async () => {
    await open()
    const ports = await startWorker((socket) => {
      socket.on('error', () => {})
      echo(socket)
    })
    fronts.of('worker').relayTo(ports)
    const secure = await client(fronts.httpsPort)
    secure.write(HELLO)
    await heard(secure)
    const order: string[] = []
    const held = fronts
      .of('worker')
      .hold()
      .then(() => order.push('quiet'))
    await delay(300)
    order.push('finished')
    secure.write(FINISHED)
    await held
    expect(order).toEqual(['finished', 'quiet'])
    secure.destroy()
  })

  test('hands those over whom a worker that has died did not take', async () => {
    await open()
    const gone = createServer()
    const port = await listen(gone)
    gone.close()
    fronts.of('worker').relayTo({ http: port, https: port })
    const waiting = await client()
    waiting.write('hello')
    await delay(150)
    fronts.of('worker').relayTo(await startWorker(echo))
    expect(await heard(waiting)).toBe('hello')
  })

  test.each([
    ['closes', (socket: Socket) => socket.end()],
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
  ])('a client that %s its connection is gone for the worker at once', async (_, leave) => {
    await open()
    const asked = Promise.withResolvers<Socket>()
    const ports = await startWorker((socket) => socket.once('data', () => asked.resolve(socket)))
    fronts.of('worker').relayTo(ports)
    const leaving = await client()
    leaving.write('a long question')
    const socket = await asked.promise
    const ended = once(socket, 'error')
    leave(leaving)
    expect(await ended).toMatchObject([{ code: 'ECONNRESET' }])
  })

  test('a client that does not take within its time what waits for it is disconnected', async () => {
    const counted: number[] = []
    await open({ unreadSeconds: 1, unread: (count) => counted.push(count) })
    const asked = Promise.withResolvers<Socket>()
    const ports = await startWorker((socket) => socket.once('data', () => asked.resolve(socket)))
    fronts.of('worker').relayTo(ports)
    const idle = await client()
    idle.pause()
    idle.write('a long question')
    const socket = await asked.promise
    const ended = once(socket, 'error')
    socket.write(Buffer.alloc(64 * 1024 * 1024, 'more than all buffers hold '))
    expect(await ended).toMatchObject([{ code: expect.stringMatching(/^(ECONNRESET|EPIPE)$/) }])
    await expect.poll(() => counted).toEqual([1])
  })

  test("passes the worker's end on as an end, after all that it has written", async () => {
    await open()
    const bytes = 4 * 1024 * 1024
    const ports = await startWorker((socket) => {
      socket.once('data', () => socket.end(Buffer.alloc(bytes)))
    })
    fronts.of('worker').relayTo(ports)
    const asking = await client()
    asking.write('a question')
    asking.resume()
    await once(asking, 'end')
    expect(asking.bytesRead).toBe(bytes)
  })

  test('reads no faster than it is read', async () => {
    await open()
    const sent: Socket[] = []
    const ports = await startWorker((socket) => {
      sent.push(socket)
      socket.on('error', () => {})
      const block = Buffer.alloc(1024 * 1024)
      const more = () => {
        while (socket.write(block));
      }
      socket.on('drain', more)
      socket.once('data', more)
    })
    fronts.of('worker').relayTo(ports)
    const lazy = await client()
    lazy.pause()
    lazy.write('all of it')
    const taken = () => (sent[0] ? sent[0].bytesWritten - sent[0].writableLength : 0)
    expect(await standstill(taken)).toBeLessThan(32 * 1024 * 1024)
    lazy.destroy()
  })

  test('gives every source one address on loopback, which is not its own', async () => {
    await open()
    const seen: (string | undefined)[] = []
    const ports = await startWorker((socket) => {
      seen.push(socket.remoteAddress)
      socket.write('!')
    })
    fronts.of('worker').relayTo(ports)
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.2']) {
      const socket = await client(fronts.httpPort, address)
      socket.write('?')
      await heard(socket)
    }
    expect(seen[0]).toMatch(/^127\./)
    expect(seen[0]).not.toBe('127.0.0.2')
    expect(seen[2]).toBe(seen[0])
    expect(seen[1]).not.toBe(seen[0])
  })

  test('opens no connection to the worker for clients that say nothing, and bounds them', async () => {
    await open({ connectionsPerSource: 20 })
    let reached = 0
    fronts.of('worker').relayTo(
      await startWorker((socket) => {
        reached += 1
        echo(socket)
      }),
    )
    const served = await client()
    served.write('served')
    expect(await heard(served)).toBe('served')
    const silent = await Promise.all(Array.from({ length: 50 }, () => client()))
    for (const socket of silent) socket.resume()
    await until(() => silent.filter(({ readableEnded }) => readableEnded).length === 31)
    expect(silent.filter(({ readableEnded }) => readableEnded)).toHaveLength(31)
    expect(reached).toBe(1)
    served.write('still')
    expect(await heard(served)).toBe('still')
    const other = await client(fronts.httpPort, '127.0.0.9')
    other.write('welcome')
    expect(await heard(other)).toBe('welcome')
    for (const socket of silent) socket.destroy()
  })

  test('bounds the connections of a source at several fronts together', async () => {
    await open({ workers: 2, connectionsPerSource: 20 })
    fronts.relayTo(await startWorker(echo))
    const silent = await Promise.all(Array.from({ length: 200 }, () => client()))
    for (const socket of silent) socket.resume()
    const left = () => silent.filter(({ readableEnded }) => !readableEnded).length
    // The kernel spreads connections over the fronts; each keeps the newest twenty of them.
    await until(() => left() === 40)
    expect(left()).toBe(40)
    const other = await client(fronts.httpPort, '127.0.0.9')
    other.write('welcome')
    expect(await heard(other)).toBe('welcome')
    for (const socket of silent) socket.destroy()
  })

  test('answers 503 from the moment it is told to refuse, those who wait included', async () => {
    await open()
    const waiting = fetch(`http://127.0.0.1:${fronts.httpPort}/v1/models`)
    const overTls = getOverTls(fronts.httpsPort, '/healthz')
    await delay(300)
    fronts.refuse((await makeLinkCertificates(Date.now())).server)
    const answer = await waiting
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
    expect(answer.headers.get('connection')).toBe('close')
    expect((await errorOf(answer)).message).toBe('This instance is shutting down; try again.')
    const goodbye = { status: 503, 'retry-after': '5', connection: 'close' }
    const messages = await fetch(`http://127.0.0.1:${fronts.httpPort}/v1/messages?beta=true`)
    expect([messages.status, messages.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await messages.json()).toEqual({
      type: 'error',
      error: {
        type: 'overloaded_error',
        message: 'This instance is shutting down; try again.',
      },
    })
    expect(await overTls).toMatchObject(goodbye)
    expect(await getOverTls(fronts.httpsPort, '/healthz')).toMatchObject(goodbye)
    expect((await fetch(`http://127.0.0.1:${fronts.httpPort}/v1/models`)).status).toBe(503)
  })

  test('refuses for good: a worker that comes up, or is to be replaced, while the router drains changes nothing', async () => {
    await open()
    const ports = await startWorker(echo)
    fronts.refuse(null)
    const status = async () =>
      (await fetch(`http://127.0.0.1:${fronts.httpPort}/`, { headers: { connection: 'close' } }))
        .status
    expect(await status()).toBe(503)
    fronts.of('worker').relayTo(ports)
    expect(await status()).toBe(503)
    await fronts.of('worker').hold()
    expect(await status()).toBe(503)
  })

  test('is one for each worker, on one address', async () => {
    await open({ workers: 3 })
    const names = ['worker', 'worker-2', 'worker-3'] as const
    const all = names.map((name) => fronts.of(name))
    expect(new Set(all).size).toBe(3)
    expect(new Set(all.map(({ httpPort }) => httpPort))).toEqual(new Set([fronts.httpPort]))
    expect(new Set(all.map(({ httpsPort }) => httpsPort))).toEqual(new Set([fronts.httpsPort]))
  })

  test('cannot be opened where another one is', async () => {
    await open()
    const taken = { host: '127.0.0.1', port: fronts.httpPort }
    await expect(
      openFronts({ http: taken, https: ANY, workers: 1, log: () => {} }),
    ).rejects.toThrow(`127.0.0.1:${fronts.httpPort} is in use`)
  })

  test('names an address that cannot be opened as it is given, of IPv6 in brackets', async () => {
    await open()
    const nowhere = { host: '2001:db8::1', port: 8_443 }
    await expect(
      openFronts({ http: ANY, https: nowhere, workers: 1, log: () => {} }),
    ).rejects.toThrow(/^\[2001:db8::1\]:8443 cannot be opened \(E[A-Z]+\)$/)
  })

  test('several cannot be opened where several of another router are, with which they would share the connections', async () => {
    await open({ workers: 2 })
    const http = { host: '127.0.0.1', port: fronts.httpPort }
    const https = { host: '127.0.0.1', port: fronts.httpsPort }
    const plan = { workers: 2, log: () => {} }
    await expect(openFronts({ ...plan, http, https: ANY })).rejects.toThrow(
      `127.0.0.1:${fronts.httpPort} is in use`,
    )
    await expect(openFronts({ ...plan, http: ANY, https })).rejects.toThrow(
      `127.0.0.1:${fronts.httpsPort} is in use`,
    )
  })

  test('several open an address of which another router has just let go', async () => {
    await open({ workers: 2 })
    const { httpPort, httpsPort } = fronts
    const served = await client()
    await fronts.close()
    fronts = await openFronts({
      http: { host: '127.0.0.1', port: httpPort },
      https: { host: '127.0.0.1', port: httpsPort },
      workers: 2,
      log: () => {},
    })
    expect([fronts.httpPort, fronts.httpsPort]).toEqual([httpPort, httpsPort])
    served.destroy()
  })

  test('are gone when they are closed', async () => {
    await open()
    const { httpPort } = fronts
    await fronts.close()
    const { promise, resolve } = Promise.withResolvers<string>()
    connect(httpPort, '127.0.0.1').once('error', (error) => resolve(error.message))
    expect(await promise).toContain('ECONNREFUSED')
  })
})
