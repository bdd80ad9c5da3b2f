import { spawnSync } from 'node:child_process'
import { connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { peerSpkiSha256 } from '../../../src/enclave/outbound/peer-key.ts'
import { connectTls, hasPublicName, tlsAddress } from '../../../src/enclave/outbound/tls-connect.ts'
import { listen } from '../../support/listen.ts'
import { startRecordingProvider, type RecordingProvider } from '../../support/recording-provider.ts'

let provider: RecordingProvider

beforeAll(async () => {
  provider = await startRecordingProvider((_request, response) => void response.end())
})
afterAll(() => provider.close())

const target = () => ({
  host: '127.0.0.1',
  port: provider.port,
  connectMs: 30_000,
  now: performance.now.bind(performance),
})

describe('a connection', () => {
  it('shows the key of the certificate as the certificate has it, over TLS 1.3', async () => {
    const socket = await connectTls({ ...target(), webPki: false })
    expect(await peerSpkiSha256(socket)).toBe(provider.tls.spkiSha256)
    expect(socket.getProtocol()).toBe('TLSv1.3')
    expect(socket.isSessionReused()).toBe(false)
    socket.destroy()
  })

  it('is refused where a public certificate is demanded and there is none', async () => {
    await expect(connectTls({ ...target(), webPki: true })).rejects.toMatchObject({
      kind: 'unreachable',
      message: 'connect: unreachable',
    })
  })
})

/** Connects in a process that has opened as many files as it may. */
const EXHAUSTED = `
  import { openSync } from 'node:fs'
  import { connectTls } from '${new URL('../../../src/enclave/outbound/tls-connect.ts', import.meta.url).href}'
  const address = { host: '127.0.0.1', port: 1, webPki: false, connectMs: 30_000, now: () => performance.now() }
  // Whatever is loaded with the first connection is there by then.
  const named = { ...address, host: 'localhost' }
  const kinds = []
  for (const one of [address, named]) kinds.push(await connectTls(one).catch(({ kind }) => kind))
  try {
    for (;;) openSync('/dev/null')
  } catch {}
  for (const one of [address, named]) kinds.push(await connectTls(one).catch(({ kind }) => kind))
  process.stdout.write(kinds.join(' '))
`

it('a connection that this process has no file descriptor for is told from one that its peer does not take', () => {
  const command = ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath]
  const ran = spawnSync('/bin/sh', [...command, '--input-type=module', '--eval', EXHAUSTED])
  expect(String(ran.stdout)).toBe('unreachable unreachable exhausted exhausted')
})

/** A port that takes connections and passes nothing on to the provider before `opens`. */
async function openGate(opens: Promise<void>) {
  const sockets: Socket[] = []
  const server = createServer((client) => {
    sockets.push(client)
    client.on('error', () => {})
    void opens.then(() => {
      const onward = connect({ port: provider.port, host: '127.0.0.1' })
      onward.on('error', () => {})
      sockets.push(onward)
      return client.pipe(onward).pipe(client)
    })
  })
  const port = await listen(server)
  const close = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { port, close }
}

describe('a connection that is not there in time', () => {
  it('is given up', async () => {
    const gate = await openGate(new Promise(() => {}))
    const given = { ...target(), port: gate.port, connectMs: 50, webPki: false }
    await expect(connectTls(given)).rejects.toMatchObject({
      kind: 'timeout',
      message: 'connect: timeout',
    })
    gate.close()
  })

  it('is waited for a moment more where this process did not run meanwhile', async () => {
    const { promise: opens, resolve: open } = Promise.withResolvers<void>()
    const gate = await openGate(opens)
    let pausedMs = 0
    const now = () => performance.now() + (pausedMs += 60_000)
    const given = { ...target(), port: gate.port, connectMs: 50, now, webPki: false }
    const connecting = connectTls(given)
    // Timers fire in their order, so the time of the connection has passed by then.
    setTimeout(open, 100)
    const socket = await connecting
    expect(await peerSpkiSha256(socket)).toBe(provider.tls.spkiSha256)
    socket.destroy()
    gate.close()
  })
})

describe('an address', () => {
  it.each([
    ['https://a.example/v1', { host: 'a.example', port: 443 }],
    ['https://[::1]:8443/v1', { host: '::1', port: 8443 }],
    ['http://a.example/v1', undefined],
  ])('is read from %s', (url, address) => {
    expect(tlsAddress(url)).toEqual(address)
  })

  it.each([
    ['a.example', true],
    ['localhost', false],
    ['nova.localhost', false],
    ['127.0.0.1', false],
    ['::1', false],
  ])('%s has a public name: %s', (host, expected) => {
    expect(hasPublicName(host)).toBe(expected)
  })
})
