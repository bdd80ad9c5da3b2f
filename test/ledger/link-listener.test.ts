import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLinkListener, type LinkAnswer } from '../../src/ledger/link-listener.ts'
import type { LinkServer } from '../../src/enclave/link/server.ts'
import type { LinkServerPlan } from '../../src/protocol/boot.ts'
import { callLink, type LinkClientOptions } from '../enclave/link-client.ts'
import { makeCertificatePair, type CertificatePair } from '../enclave/link-material.ts'

const MAX_BODY_BYTES = 4 * 1024 * 1024

const LIMITS = { maxHandshakeMs: 60_000, maxHeadBytes: 8_192, maxBodyBytes: MAX_BODY_BYTES }

let server: LinkServer
let own: CertificatePair
let worker: CertificatePair
let stranger: CertificatePair
let served = 0
let slow = Promise.withResolvers<LinkAnswer>()

beforeAll(async () => {
  ;[own, worker, stranger] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
    makeCertificatePair('worker'),
  ])
  server = await startLinkListener(plan(), LIMITS, async ({ path, body }) => {
    served += 1
    if (path === '/slow') return slow.promise
    return path === '/echo' ? { status: 200, body } : { status: 404 }
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

const PATIENT = { timeout: 30_000 }

describe('the listener of the ledger', () => {
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
      // oxlint-disable-next-line no-await-in-loop -- the worker waits, too
      await expect.poll(received, PATIENT).toMatch(new RegExp(`\r\n\r\n${body}$`))
    }
    socket.destroy()
    await ended
  })

  it.each([
    ['what is no request', 'NONSENSE\r\n\r\n'],
    [
      'a body that is too large',
      `POST /echo HTTP/1.1\r\nContent-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`,
    ],
    ['a second request before the answer to the first', `${echo('one')}${echo('two')}`],
  ])('refuses %s with 400, and closes the connection', async (_what, text) => {
    const before = served
    const { socket, received, ended } = await open()
    socket.write(text)
    await ended
    expect(received()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*\r\nconnection: close\r\n\r\n$/)
    expect(served).toBe(before)
  })

  it('refuses a request that comes while the one before is answered, and carries that out all the same', async () => {
    slow = Promise.withResolvers()
    const before = served
    const { socket, received, ended } = await open()
    socket.write('GET /slow HTTP/1.1\r\n\r\n')
    await expect.poll(() => served, PATIENT).toBe(before + 1)
    socket.write(echo('two'))
    await ended
    slow.resolve({ status: 200 })
    expect(received()).toMatch(/^HTTP\/1\.1 400 /)
    expect((await callLink(link(), '/echo', { method: 'POST', body: 'on' })).text).toBe('on')
    expect(served).toBe(before + 2)
  })

  it('outlives a worker that leaves before its answer', async () => {
    slow = Promise.withResolvers()
    const before = served
    const { socket, ended } = await open()
    socket.write('GET /slow HTTP/1.1\r\n\r\n')
    await expect.poll(() => served, PATIENT).toBe(before + 1)
    socket.destroy()
    await ended
    slow.resolve({ status: 200 })
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
    const limits = { ...LIMITS, maxHandshakeMs: 50 }
    const impatient = await startLinkListener(plan(), limits, async () => ({ status: 404 }))
    const socket = connectTcp(impatient.port, '127.0.0.1').resume()
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('close', resolve))
    expect(socket.destroyed).toBe(true)
    await impatient.close()
  })

  it('closes every connection when it is closed', async () => {
    const { socket, ended } = await open()
    await server.close()
    await ended
    expect(socket.destroyed).toBe(true)
  })
})
