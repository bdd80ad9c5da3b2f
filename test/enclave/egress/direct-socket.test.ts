import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectDirect } from '../../../src/enclave/egress/direct-socket.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { connectTls } from '../../../src/enclave/outbound/tls-connect.ts'
import { startByteProvider, type ByteProvider } from '../../support/byte-provider.ts'

/** Patience with what must happen, ms. */
const PATIENT = { timeout: 30_000 }

let provider: ByteProvider
let sent: TLSSocket | undefined

beforeAll(async () => {
  provider = await startByteProvider(await makeTlsIdentity([], new Date()), (tls) => {
    sent = tls
    tls.write('first')
  })
})
afterAll(() => provider.close())

/** A connection, and the provider's side of it, which has sent `first`. */
async function opened(): Promise<{ socket: TLSSocket; peer: TLSSocket }> {
  sent = undefined
  const { port } = provider
  const target = { host: '127.0.0.1', port, webPki: false, connectMs: 10_000, now: Date.now }
  const socket = await connectDirect((take) => connectTls(target, take))
  socket.write('GET / HTTP/1.1\r\n\r\n')
  await expect.poll(() => sent, PATIENT).toBeDefined()
  if (sent === undefined) throw new Error('nobody asked')
  return { socket, peer: sent }
}

function readFrom(socket: TLSSocket): string | undefined {
  const read: Buffer | null = socket.read()
  return read?.toString()
}

it('gives a reader what comes at once, each read by itself and none twice', async () => {
  const { socket, peer } = await opened()
  const reads: string[] = []
  socket.on('readable', () => {
    for (let read = readFrom(socket); read !== undefined; read = readFrom(socket)) {
      reads.push(read)
    }
    peer.write(String(reads.length))
    if (reads.length === 3) socket.destroy()
  })
  await once(socket, 'close')
  expect(reads).toEqual(['first', '1', '2'])
})

it('keeps what nobody reads, in order, and holds the provider back', async () => {
  const { socket, peer } = await opened()
  const piece = Buffer.alloc(1024 * 1024, 'x')
  let pieces = 0
  while (peer.write(piece) || peer.writableLength < 64 * piece.length) pieces += 1
  await expect.poll(() => socket.readableLength, PATIENT).toBeGreaterThan(0)
  peer.end('last')
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part)
  const text = Buffer.concat(parts).toString()
  expect(text.slice(0, 8)).toBe('firstxxx')
  expect(text.slice(-5)).toBe('xlast')
  expect(text.length).toBe('firstlast'.length + (pieces + 1) * piece.length)
})

it('ends only after what was not read yet', async () => {
  const { socket, peer } = await opened()
  await expect.poll(() => socket.readableLength, PATIENT).toBe('first'.length)
  peer.end('last')
  let hasEnded = false
  socket.once('end', () => (hasEnded = true))
  await expect.poll(() => socket.readableLength, PATIENT).toBe('firstlast'.length)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(hasEnded).toBe(false)
  expect(readFrom(socket)).toBe('firstlast')
  await once(socket, 'end')
})

it('reads nothing while it is paused, and goes on when it is resumed', async () => {
  const { socket, peer } = await opened()
  const reads: string[] = []
  socket.on('readable', () => {
    const read = readFrom(socket)
    if (read === undefined) return
    reads.push(read)
    socket.pause()
    // As a reader does that asks until there is no more.
    expect(readFrom(socket)).toBeUndefined()
    peer.write('more')
  })
  await expect.poll(() => reads, PATIENT).toEqual(['first'])
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(reads).toEqual(['first'])
  socket.resume()
  await expect.poll(() => reads, PATIENT).toEqual(['first', 'more'])
  socket.destroy()
})
