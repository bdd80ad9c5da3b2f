import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'
import { startWorker } from '../../../src/host/stack/start-worker.ts'
import { compileWorkerdConfig } from '../../../src/host/stack/workerd-config.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { listen } from '../../support/listen.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { makeTestAuthority, type TestAuthority } from '../../support/test-authority.ts'

/** Storage workers under the configuration that the product makes, against a server with TLS and one without. */

const ENCRYPTED = {
  sql: 'SELECT CAST(version AS TEXT) AS version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl',
  params: [],
}
const NOT_ACCEPTED = 'certificate is not accepted: service.database_ca vouches for none'
const TOLD = /someone|the-password|ledger/
const CUT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'confidential-model-router' AND datname = current_database()`
const ONE = { sql: 'SELECT 1 AS one', params: [] }

const directory = mkdtempSync(join(tmpdir(), 'cmr-test-database-tls-'))
const stops: (() => Promise<unknown>)[] = []
let authority: TestAuthority
let other: TestAuthority
let secured: PostgresServer
let script: string

beforeAll(async () => {
  authority = await makeTestAuthority()
  other = await makeTestAuthority()
  secured = await startPostgres(tmpdir(), await authority.issue('localhost'))
  stops.push(() => secured.stop())
  script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
})

afterAll(async () => {
  for (const stop of stops.toReversed()) await stop()
  rmSync(directory, { recursive: true })
})

async function storageAt(databaseUrl: string, databaseCa: string | undefined) {
  const link = await makeLinkCertificates(Date.now())
  const config = await compileWorkerdConfig({
    script,
    port: 0,
    tlsPort: 0,
    tls: link.server,
    link: { port: 1, worker: link.worker, serverCertPem: link.server.certPem },
    storage: { engine: 'postgres', secret: databaseUrl },
    databaseCa,
    storageDir: directory,
    maxOpenRequests: 100,
    providerCalls: 'daemon',
    privateWebhooks: false,
  })
  const worker = await startWorker(config, { logFile: join(directory, 'worker.log') })
  stops.push(() => worker.child.stop(1_000))
  const url = `http://127.0.0.1:${worker.ready.http}/`
  return remoteStorage((body) => fetch(url, { method: 'POST', body }))
}

/** The secured server under another name for the same address. */
async function databaseAt(host: string, query = ''): Promise<string> {
  const url = new URL(await secured.createDatabase())
  url.hostname = host
  url.search = query
  return url.href
}

/**
 * A server that answers the first bytes of each client with `answer`, and keeps what it was sent: inside TLS, where it
 * has a certificate.
 */
async function rogue(answer: string, tls?: { certPem: string; keyPem: string }) {
  const chunks: Buffer[] = []
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', (request) => {
      chunks.push(request)
      socket.write(answer)
      const inner =
        tls === undefined
          ? socket
          : new TLSSocket(socket, { isServer: true, cert: tls.certPem, key: tls.keyPem })
      inner.on('error', () => {})
      inner.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        inner.destroy()
      })
    })
  })
  const port = await listen(server)
  stops.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `postgres://someone:the-password@localhost:${port}/ledger`,
    received: () => Buffer.concat(chunks).toString('latin1'),
  }
}

describe('a database for which service.database_ca vouches', () => {
  it('is used over TLS, whatever its address says of TLS', async () => {
    for (const query of ['', '?sslmode=disable', '?sslmode=require']) {
      const storage = await storageAt(await databaseAt('localhost', query), authority.rootPem)
      const [[row] = []] = await storage.directory().batch([ENCRYPTED])
      expect(row).toEqual({ version: 'TLSv1.3' })
    }
  })

  it('may be vouched for by any of several authorities', async () => {
    const both = `${other.rootPem}\n${authority.rootPem}\n`
    const storage = await storageAt(await databaseAt('localhost'), both)
    await expect(storage.directory().batch([ONE])).resolves.toEqual([[{ one: 1 }]])
  })

  it('carries many batches at once, and large ones', async () => {
    const storage = await storageAt(await databaseAt('localhost'), authority.rootPem)
    const text = 'x'.repeat(300_000)
    const echo = { sql: 'SELECT CAST(? AS TEXT) AS text', params: [text] }
    const batches = Array.from({ length: 24 }, () => storage.directory().batch([echo, ONE]))
    for (const batch of batches) {
      await expect(batch).resolves.toEqual([[{ text }], [{ one: 1 }]])
    }
  })

  it('is reached over new connections when idle ones were cut, without failing a batch', async () => {
    const databaseUrl = await databaseAt('localhost')
    const storage = await storageAt(databaseUrl, authority.rootPem)
    await Promise.all(Array.from({ length: 8 }, () => storage.directory().batch([ONE])))
    const outside = postgres(databaseUrl, { max: 1, onnotice: () => {} })
    const cut = await outside.unsafe(CUT)
    await outside.end()
    expect(cut.length).toBeGreaterThan(0)
    for (let i = 0; i < 8; i++) {
      await expect(storage.directory().batch([ONE])).resolves.toEqual([[{ one: 1 }]])
    }
  })

  it('is refused by name with a certificate of another authority', async () => {
    const storage = await storageAt(await databaseAt('localhost'), other.rootPem)
    await expect(storage.directory().batch([ONE])).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: expect.stringContaining(NOT_ACCEPTED),
    })
  })

  it('is refused by name with a certificate for another host, and is told nothing', async () => {
    const right = await rogue('S', await authority.issue('localhost'))
    const trusting = await storageAt(right.url, authority.rootPem)
    await expect(trusting.directory().batch([ONE])).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: expect.not.stringContaining('certificate'),
    })
    expect(right.received()).toMatch(/someone/)

    const wrong = await rogue('S', await authority.issue('database.example'))
    const storage = await storageAt(wrong.url, authority.rootPem)
    await expect(storage.directory().batch([ONE])).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: expect.stringContaining(NOT_ACCEPTED),
    })
    expect(wrong.received()).not.toMatch(TOLD)
  })

  it('is refused by name when it offers no TLS, and is told nothing', async () => {
    const { url, received } = await rogue('N')
    const storage = await storageAt(url, authority.rootPem)
    await expect(storage.directory().batch([ONE])).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: expect.stringContaining('offers no TLS, and service.database_ca demands it'),
    })
    expect(received()).not.toMatch(TOLD)
  })

  it('is refused when somebody adds bytes before TLS begins', async () => {
    const { url } = await rogue('SR\0\0\0\x08\0\0\0\0')
    const storage = await storageAt(url, authority.rootPem)
    await expect(storage.directory().batch([ONE])).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: expect.stringContaining('offers no TLS, and service.database_ca demands it'),
    })
  })
})
