import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../../support/listen.ts'
import type { Started } from '../../../src/host/stack/process-restarter.ts'
import {
  makeLinkCertificates,
  type LinkCertificates,
} from '../../../src/host/stack/link-certificates.ts'
import { startWorker, type WorkerPorts } from '../../../src/host/stack/start-worker.ts'
import { compileWorkerdConfig, type WorkerdPlan } from '../../../src/host/stack/workerd-config.ts'

const SCRIPT = `
import { DurableObject } from 'cloudflare:workers'
export class StoreObject extends DurableObject {
  async count() {
    this.ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS visits (n)')
    this.ctx.storage.sql.exec('INSERT INTO visits VALUES (1)')
    return this.ctx.storage.sql.exec('SELECT COUNT(*) AS n FROM visits').one().n
  }
}
export class ChunkObject extends DurableObject {}
export class PostgresPool extends DurableObject {}
export const pipes = {}
export const drain = { fetch: (request, env) => new Response(env.DRAIN_TOKEN) }
export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/count') return Response.json(await env.STORE.getByName('x').count())
    if (pathname === '/storage') return new Response(env.STORAGE)
    if (pathname === '/out') return fetch(searchParams.get('url')).catch((e) => new Response(e.message, { status: 502 }))
    return env.LINK.fetch('https://link/v1/state').catch((e) => new Response(e.message, { status: 502 }))
  }
}`

let link: LinkCertificates
let directory: string
let daemon: Server
let linkPort: number
const started: Started<WorkerPorts>[] = []

beforeAll(async () => {
  link = await makeLinkCertificates(Date.now())
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-'))
  daemon = createServer(
    {
      key: link.server.keyPem,
      cert: link.server.certPem,
      ca: link.worker.certPem,
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: 'TLSv1.3',
    },
    (_request, response) => response.end('from the daemon'),
  )
  linkPort = await listen(daemon)
})

afterAll(async () => {
  await Promise.all(started.map(({ child }) => child.stop(1000)))
  daemon.close()
  rmSync(directory, { recursive: true })
})

function plan(changes: Partial<WorkerdPlan> = {}): WorkerdPlan {
  return {
    script: SCRIPT,
    port: 0,
    tlsPort: 0,
    tls: link.server,
    link: { port: linkPort, worker: link.worker, serverCertPem: link.server.certPem },
    storage: { engine: 'durable-object' },
    storageDir: directory,
    maxOpenRequests: 100,
    providerCalls: 'worker',
    privateWebhooks: true,
    ...changes,
  }
}

async function start(changes: Partial<WorkerdPlan> = {}): Promise<WorkerPorts> {
  const config = await compileWorkerdConfig(plan(changes))
  const worker = await startWorker(config, { logFile: join(directory, 'worker.log') })
  started.push(worker)
  return worker.ready
}

async function get(ports: WorkerPorts, path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://127.0.0.1:${ports.http}${path}`)
  return { status: answer.status, text: await answer.text() }
}

describe('workerd under the generated configuration', () => {
  test('reaches the daemon over the pinned link', async () => {
    const ports = await start()
    expect(await get(ports, '/')).toEqual({ status: 200, text: 'from the daemon' })
    expect(await get(ports, '/storage')).toEqual({ status: 200, text: 'durable-object' })
  })

  test.runIf(existsSync('/proc/self/environ'))(
    'runs with restartable sequences free for its allocator',
    async () => {
      await start()
      const given = readFileSync(`/proc/${started.at(-1)?.child.pid}/environ`, 'utf8').split('\0')
      const [tunables] = given.filter((variable) => variable.startsWith('GLIBC_TUNABLES='))
      expect(tunables).toMatch(/^GLIBC_TUNABLES=glibc\.pthread\.rseq=0(:|$)/)
    },
  )

  test('refuses a daemon with another certificate', async () => {
    const other = await makeLinkCertificates(Date.now())
    const ports = await start({
      link: { port: linkPort, worker: link.worker, serverCertPem: other.server.certPem },
    })
    expect((await get(ports, '/')).status).toBe(502)
  })

  test('is refused by the daemon with another client certificate', async () => {
    const other = await makeLinkCertificates(Date.now())
    const ports = await start({
      link: { port: linkPort, worker: other.worker, serverCertPem: link.server.certPem },
    })
    expect((await get(ports, '/')).status).toBe(502)
  })

  test('keeps Durable Object rows on disk over a restart on the same port', async () => {
    const ports = await start()
    const before = Number((await get(ports, '/count')).text)
    await started.pop()?.child.stop(1000)
    const again = await start({ port: ports.http, tlsPort: ports.https })
    expect(again).toEqual(ports)
    expect(Number((await get(again, '/count')).text)).toBe(before + 1)
  })

  test('has a socket of its own for drains, of which those of clients know nothing', async () => {
    const [drainToken, logFile] = ['a-token-of-the-test', join(directory, 'worker.log')]
    const config = await compileWorkerdConfig(plan({ drainToken }))
    const worker = await startWorker(config, { logFile, drainToken })
    started.push(worker)
    const { http, https, drain = Number.NaN } = worker.ready
    expect(await get({ http: drain, https }, '/storage')).toEqual({ status: 200, text: drainToken })
    expect(await get({ http, https }, '/storage')).toEqual({ status: 200, text: 'durable-object' })
    expect(await start()).toEqual({ http: expect.any(Number), https: expect.any(Number) })
  })

  test('reaches no address itself where the daemon carries its calls', async () => {
    const open = await start()
    const closed = await start({ providerCalls: 'daemon' })
    const target = `/out?url=${encodeURIComponent(`http://127.0.0.1:${open.http}/storage`)}`
    expect((await get(open, target)).text).toBe('durable-object')
    expect((await get(closed, target)).status).toBe(502)
  })

  test('serves HTTPS with the given key, from TLS 1.2 on', async () => {
    const ports = await start()
    expect((await handshake(ports.https, 'TLSv1.2')).getProtocol()).toBe('TLSv1.2')
    const socket = await handshake(ports.https, 'TLSv1.3')
    expect(pem(socket.getPeerCertificate().raw)).toBe(link.server.certPem.trim())
    await expect(handshake(ports.https, 'TLSv1.1')).rejects.toThrow(/alert|protocol/i)
  })
})

function handshake(port: number, version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const options = {
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      minVersion: version,
      maxVersion: version,
      ...(version === 'TLSv1.1' ? { ciphers: 'DEFAULT@SECLEVEL=0' } : {}),
    }
    const socket = connect(options, () => {
      socket.end()
      resolve(socket)
    })
    socket.once('error', reject)
  })
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----'].join('\n')
}
