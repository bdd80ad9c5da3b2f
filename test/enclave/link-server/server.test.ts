import { once } from 'node:events'
import { request as plainRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createDispatcher, type LinkRoute } from '../../../src/enclave/link/dispatch.ts'
import { jsonAnswer, readJson } from '../../../src/enclave/link/answer.ts'
import {
  startLinkServer,
  type LinkServer,
  type UnauthenticatedLimits,
} from '../../../src/enclave/link-server/server.ts'
import type { LinkServerPlan } from '../../../src/protocol/boot.ts'
import { callLink } from '../link-client.ts'
import { makeCertificatePair, type CertificatePair } from '../link-material.ts'

let server: LinkServer
let own: CertificatePair
let worker: CertificatePair
let stranger: CertificatePair
let served = 0
const logged: object[] = []

beforeAll(async () => {
  ;[own, worker, stranger] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
    makeCertificatePair('worker'),
  ])
  const routes: LinkRoute[] = [
    { method: 'GET', path: '/ok', handle: async () => jsonAnswer({ ok: true }) },
    {
      method: 'POST',
      path: '/echo',
      handle: async ({ body }) => jsonAnswer(await readJson(body, 16)),
    },
    {
      method: 'POST',
      path: '/echo-long',
      handle: async ({ body }) => jsonAnswer(await readJson(body, 2_000_000)),
    },
    {
      method: 'GET',
      path: '/broken',
      handle: () => {
        const error = new Error('a detail that must not leave')
        return Promise.reject(Object.assign(error, { code: 'ERR_BROKEN' }))
      },
    },
  ]
  const dispatcher = createDispatcher(
    routes,
    (event, fields) => void logged.push({ event, ...fields }),
  )
  server = await startLinkServer(plan(), (request, response) => {
    served++
    dispatcher(request, response)
  })
})

function plan(): LinkServerPlan {
  return {
    port: 0,
    host: '127.0.0.1',
    serverCertPem: own.certPem,
    serverKeyPem: own.keyPem,
    workerCertPem: worker.certPem,
  }
}

afterAll(() => server.close())

const call = (path: string, init?: { method?: string; body?: string | Buffer }) =>
  callLink({ port: server.port, serverCertPem: own.certPem, client: worker }, path, init)

describe('the link server', () => {
  it('answers the worker', async () => {
    const reply = await call('/ok')
    expect([reply.status, reply.json()]).toEqual([200, { ok: true }])
  })

  it('reads a body of several parts as one', async () => {
    const body = JSON.stringify('\u20ac'.repeat(400_000))
    const reply = await call('/echo-long', { method: 'POST', body })
    expect([reply.status, reply.text]).toEqual([200, body])
  })

  it.each([
    ['a client without a certificate', () => ({})],
    ['a client with another certificate of the same name', () => ({ client: stranger })],
    ['TLS 1.2', () => ({ client: worker, tls: { maxVersion: 'TLSv1.2' as const } })],
    [
      'the certificate of the worker without its key',
      () => ({ client: { certPem: worker.certPem, keyPem: stranger.keyPem } }),
    ],
  ])('refuses %s before any HTTP', async (_what, options) => {
    const before = served
    const link = { port: server.port, serverCertPem: own.certPem, ...options() }
    const failed = await new Promise<unknown>((resolve) => {
      try {
        callLink(link, '/ok').then(() => resolve(undefined), resolve)
      } catch (error) {
        resolve(error)
      }
    })
    expect(failed).toBeInstanceOf(Error)
    expect(served).toBe(before)
  })

  it('refuses plain HTTP', async () => {
    const before = served
    const failed = await new Promise<unknown>((resolve) => {
      plainRequest({ host: '127.0.0.1', port: server.port, path: '/ok' }, resolve)
        .on('error', resolve)
        .end()
    })
    expect(failed).toMatchObject({ code: 'ECONNRESET' })
    expect(served).toBe(before)
  })

  it('is refused by a worker that expects another server', async () => {
    const wrong = { port: server.port, serverCertPem: stranger.certPem, client: worker }
    await expect(callLink(wrong, '/ok')).rejects.toMatchObject({
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    })
  })

  it.each([
    ['an unknown path', '/no', {}, 404, 'not_found', 'the link has no such path'],
    ['a path below one that ends', '/ok/x', {}, 404, 'not_found', 'the link has no such path'],
    ['another method', '/ok', { method: 'POST' }, 405, 'method_not_allowed', 'this path takes GET'],
    [
      'a body that is no JSON',
      '/echo',
      { method: 'POST', body: '{' },
      400,
      'invalid_request',
      'the body is not JSON',
    ],
    [
      'a body that is not UTF-8',
      '/echo',
      { method: 'POST', body: Buffer.from('"\xff"', 'latin1') },
      400,
      'invalid_request',
      'the body is not JSON',
    ],
    [
      'a body that is too large',
      '/echo',
      { method: 'POST', body: '"'.repeat(17) },
      413,
      'request_too_large',
      'the body is over 16 bytes',
    ],
    ['its own failure, without telling it', '/broken', {}, 500, 'internal', 'internal error'],
    [
      'a body far too large',
      '/echo',
      { method: 'POST', body: ' '.repeat(4_000_000) },
      413,
      'request_too_large',
      'the body is over 16 bytes',
    ],
  ])('answers %s with a code and a message', async (_what, path, init, status, code, message) => {
    const reply = await call(path, init)
    expect([reply.status, reply.json()]).toEqual([status, { error: { code, message } }])
  })

  it('logs its own failures by code and place, and nothing that they say', async () => {
    logged.length = 0
    await call('/nowhere')
    await call('/broken')
    expect(logged).toEqual([
      {
        event: 'link_failed',
        path: '/broken',
        error: 'Error',
        error_code: 'ERR_BROKEN',
        frames: expect.arrayContaining([expect.stringContaining('server.test.ts')]),
      },
    ])
    expect(JSON.stringify(logged)).not.toContain('detail')
  })
})

describe('connections that never finish their handshake', () => {
  const sockets: Socket[] = []
  let limited: LinkServer | undefined

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await limited?.close()
  })

  /** A server with these limits, which answers, and connections to it that send nothing. */
  async function beset(limits: UnauthenticatedLimits, count: number) {
    limited = await startLinkServer(plan(), (_request, response) => response.end('{}'), { limits })
    const { port } = limited
    const closed: number[] = []
    for (let index = 0; index < count; index++) {
      const socket = connect({ port, host: '127.0.0.1' })
      sockets.push(socket)
      socket.on('error', () => {})
      socket.once('close', () => closed.push(index))
      await once(socket, 'connect')
    }
    return { port, closed }
  }

  it('are closed when there are too many, the oldest first, and keep no worker out', async () => {
    const { port, closed } = await beset({ handshakes: 5, handshakeMs: 60_000 }, 8)
    await expect.poll(() => closed.length).toBe(3)
    expect(new Set(closed)).toEqual(new Set([0, 1, 2]))
    const reply = await callLink({ port, serverCertPem: own.certPem, client: worker }, '/ok')
    expect(reply.status).toBe(200)
  })

  it('are closed when their time is over', async () => {
    const { closed } = await beset({ handshakes: 5, handshakeMs: 20 }, 2)
    await expect.poll(() => closed.length).toBe(2)
  })

  it('are no longer counted once they have finished it', async () => {
    const { port } = await beset({ handshakes: 2, handshakeMs: 60_000 }, 0)
    const link = { port, serverCertPem: own.certPem, client: worker }
    const tls = { ca: own.certPem, cert: worker.certPem, key: worker.keyPem, servername: 'enclave' }
    const kept = connectTls({ port, host: '127.0.0.1', ...tls })
    sockets.push(kept)
    await once(kept, 'secureConnect')
    for (let calls = 0; calls < 4; calls++) expect((await callLink(link, '/ok')).status).toBe(200)
    expect(kept.destroyed).toBe(false)
    kept.write('GET /ok HTTP/1.1\r\nhost: enclave\r\n\r\n')
    const [answer]: unknown[] = await once(kept, 'data')
    expect(String(answer)).toContain('200 OK')
  })
})
