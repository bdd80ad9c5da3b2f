import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLedgerServer, type LedgerReply } from '../../src/ledger/ledger-server.ts'
import type { LinkServer } from '../../src/enclave/link-server/server.ts'
import type { LinkServerPlan } from '../../src/protocol/boot.ts'
import { MAX_MESSAGE_BODY_BYTES, MESSAGE_KINDS } from '../../src/protocol/link-messages.ts'
import { callMessage, openMessages, textOf } from '../enclave/link-server/message-client.ts'
import { callLink, type LinkClientOptions } from '../enclave/link-client.ts'
import { makeCertificatePair, type CertificatePair } from '../enclave/link-material.ts'

const MAX_BODY_BYTES = 4 * 1024 * 1024

const OPTIONS = { process: 'a', handshakeMs: 60_000, maxBodyBytes: MAX_BODY_BYTES }

const NOTHING = new Uint8Array()
const LARGE = new Uint8Array(MAX_MESSAGE_BODY_BYTES + 1).fill(0x20)

let server: LinkServer
let own: CertificatePair
let worker: CertificatePair
let stranger: CertificatePair
let served = 0
let slow = Promise.withResolvers<LedgerReply>()

beforeAll(async () => {
  ;[own, worker, stranger] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
    makeCertificatePair('worker'),
  ])
  server = await startLedgerServer(plan(), OPTIONS, async (path, body) => {
    served += 1
    if (path === '/slow') return slow.promise
    if (path === '/large') return { status: 200, body: LARGE }
    return path === '/echo' ? { status: 200, body } : { status: 404, body: NOTHING }
  })
})

afterAll(() => server.close())

function plan(): LinkServerPlan {
  const { certPem: serverCertPem, keyPem: serverKeyPem } = own
  return {
    port: 0,
    host: '127.0.0.1',
    serverCertPem,
    serverKeyPem,
    workerCertPem: worker.certPem,
  }
}

const link = (more: Partial<LinkClientOptions> = {}): LinkClientOptions => {
  return { port: server.port, serverCertPem: own.certPem, client: worker, ...more }
}

/** A connection of the worker, and what it has received so far. */
async function open(): Promise<{
  socket: TLSSocket
  received: () => string
  ended: Promise<unknown>
}> {
  const socket = connect({
    port: server.port,
    host: '127.0.0.1',
    servername: 'enclave',
    ca: own.certPem,
    cert: worker.certPem,
    key: worker.keyPem,
  })
  let text = ''
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')))
  socket.on('error', () => {})
  const ended = once(socket, 'close')
  await once(socket, 'secureConnect')
  return { socket, received: () => text, ended }
}

const echo = (body: string) =>
  `POST /echo HTTP/1.1\r\nHost: ledger\r\nContent-Length: ${body.length}\r\n\r\n${body}`

const missing = () => {
  throw new Error('a call without an answer')
}

const messages = () => openMessages(server.port, own.certPem, worker)

const PATIENT = { timeout: 30_000 }

describe('the server of the ledger', () => {
  it('answers a body of many parts', async () => {
    const body = '{"a":1}'.repeat(400_000)
    const reply = await callLink(link(), '/echo', { method: 'POST', body })
    expect([reply.status, reply.text === body]).toEqual([200, true])
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(body.length),
    })
  })

  it('answers 404 to another path', async () => {
    expect(await callLink(link(), '/none')).toMatchObject({ status: 404, text: '' })
  })

  it('answers one request after another on a connection', async () => {
    const { socket, received, ended } = await open()
    for (const body of ['one', 'two', 'three']) {
      socket.write(echo(body))
      await expect.poll(received, PATIENT).toMatch(new RegExp(`\r\n\r\n${body}$`))
    }
    socket.destroy()
    await ended
  })

  it('refuses what is no request with 400, and closes the connection', async () => {
    const before = served
    const { socket, received, ended } = await open()
    socket.write('NONSENSE\r\n\r\n')
    await ended
    expect(received()).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    expect(served).toBe(before)
  })

  it('refuses a body that is too large with 400', async () => {
    const before = served
    const body = 'x'.repeat(MAX_BODY_BYTES + 1)
    const reply = await callLink(link(), '/echo', { method: 'POST', body })
    expect([reply.status, reply.text, reply.headers.connection]).toEqual([400, '', 'close'])
    expect(served).toBe(before)
  })

  it('outlives a worker that leaves in the middle of its call', async () => {
    const before = served
    const { socket, ended } = await open()
    socket.end('POST /echo HTTP/1.1\r\nHost: ledger\r\nContent-Length: 9\r\n\r\nhalf')
    await ended
    expect((await callLink(link(), '/echo', { method: 'POST', body: 'on' })).text).toBe('on')
    expect(served).toBe(before + 1)
  })

  it('answers a message as the same call over HTTP', async () => {
    const client = await messages()
    client.send(
      callMessage(1, { path: '/echo', headers: {} }, '[1]'),
      callMessage(2, { path: '/none', headers: {} }),
      callMessage(3, 'no JSON'),
      callMessage(4, '{"headers":{}}'),
    )
    const replies = [await client.next(), await client.next(), await client.next()]
    replies.push(await client.next())
    const told = new Map(replies.map((reply) => [reply.id, reply]))
    const of = (id: number) => {
      const { kind, head, body } = told.get(id) ?? missing()
      const { status }: { status: number } = JSON.parse(head)
      return [kind, status, Buffer.from(body).toString()]
    }
    expect([1, 2, 3, 4].map(of)).toEqual([
      [MESSAGE_KINDS.answer, 200, '[1]'],
      [MESSAGE_KINDS.answer, 404, ''],
      [MESSAGE_KINDS.answer, 400, ''],
      [MESSAGE_KINDS.answer, 400, ''],
    ])
    client.socket.close()
    await client.closed
  })

  it('keeps an answer that is larger than a message may be until it is fetched, once, under an id that no other process gives', async () => {
    const client = await messages()
    client.send(callMessage(1, { path: '/large', headers: {} }))
    const { kind, head } = await client.next()
    expect([kind, JSON.parse(head)]).toEqual([MESSAGE_KINDS.waiting, { waiting: 'a-1' }])
    const { status, text } = await callLink(link(), '/v1/waiting/a-1')
    expect([status, text.length]).toEqual([200, MAX_MESSAGE_BODY_BYTES + 1])
    expect(await callLink(link(), '/v1/waiting/a-1')).toMatchObject({ status: 404, text: '' })
    client.socket.close()
    await client.closed
  })

  it('keeps no answer of a worker that has left', async () => {
    slow = Promise.withResolvers()
    const before = served
    const client = await messages()
    client.send(callMessage(1, { path: '/slow', headers: {} }))
    await expect.poll(() => served, PATIENT).toBe(before + 1)
    client.socket.terminate()
    await client.closed
    const other = await messages()
    const echoed = async () => {
      other.send(callMessage(1, { path: '/echo', headers: {} }, 'on'))
      return textOf(await other.next())
    }
    // The server has seen it go once it answers on a connection that was opened later.
    expect(await echoed()).toBe('on')
    slow.resolve({ status: 200, body: LARGE })
    expect(await echoed()).toBe('on')
    expect(await callLink(link(), '/v1/waiting/a-2')).toMatchObject({ status: 404 })
    other.socket.close()
    await other.closed
  })

  it('outlives a worker that leaves before its answer', async () => {
    slow = Promise.withResolvers()
    const before = served
    const { socket, ended } = await open()
    socket.write('GET /slow HTTP/1.1\r\nHost: ledger\r\n\r\n')
    await expect.poll(() => served, PATIENT).toBe(before + 1)
    socket.destroy()
    await ended
    slow.resolve({ status: 200, body: NOTHING })
    expect((await callLink(link(), '/echo', { method: 'POST', body: 'on' })).text).toBe('on')
  })

  it.each<[string, () => Partial<LinkClientOptions>]>([
    ['a client with another certificate of the same name', () => ({ client: stranger })],
    ['TLS 1.2', () => ({ tls: { maxVersion: 'TLSv1.2' } })],
    [
      'the certificate of the worker without its key',
      () => ({ client: { certPem: worker.certPem, keyPem: stranger.keyPem } }),
    ],
  ])('refuses %s before any HTTP', async (_what, options) => {
    const before = served
    const call = async () => callLink(link(options()), '/echo')
    await expect(call()).rejects.toBeInstanceOf(Error)
    expect(served).toBe(before)
  })

  it('refuses a client without a certificate before any HTTP', async () => {
    const before = served
    const { port, serverCertPem } = link()
    await expect(callLink({ port, serverCertPem }, '/echo')).rejects.toBeInstanceOf(Error)
    expect(served).toBe(before)
  })

  it('ends a connection whose handshake takes too long', async () => {
    const options = { ...OPTIONS, handshakeMs: 50 }
    const impatient = await startLedgerServer(plan(), options, async () => ({
      status: 404,
      body: NOTHING,
    }))
    const socket = connectTcp(impatient.port, '127.0.0.1').resume()
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('close', resolve))
    expect(socket.destroyed).toBe(true)
    await impatient.close()
  })

  it('closes every connection when it is closed', async () => {
    const { socket, received, ended } = await open()
    socket.write(echo('one'))
    await expect.poll(received, PATIENT).toMatch(/\r\n\r\none$/)
    const client = await messages()
    await server.close()
    await Promise.all([ended, client.closed])
    expect(socket.destroyed).toBe(true)
  })
})
