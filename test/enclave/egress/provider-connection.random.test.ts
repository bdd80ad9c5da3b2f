import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Exchange } from '../../../src/enclave/egress/exchange.ts'
import { openPinnedConnection } from '../../../src/enclave/egress/pinned-connection.ts'
import type { ProviderConnection } from '../../../src/enclave/egress/provider-connection.ts'
import type { ProviderAnswer } from '../../../src/enclave/egress/provider-answer.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { connectTls, type TlsTarget } from '../../../src/enclave/outbound/tls-connect.ts'
import { peerSpkiSha256 } from '../../../src/enclave/outbound/peer-key.ts'
import { startByteProvider, type ByteProvider } from '../../support/byte-provider.ts'

let provider: ByteProvider
let target: TlsTarget
let spkiSha256: string

beforeAll(async () => {
  provider = await startByteProvider(await makeTlsIdentity([], new Date()), () => {})
  const { port } = provider
  target = { host: '127.0.0.1', port, webPki: false, connectMs: 30_000, now: Date.now }
  const socket = await connectTls(target)
  spkiSha256 = (await peerSpkiSha256(socket)) ?? ''
  socket.destroy()
})
afterAll(() => provider.close())

/** Integers below a limit, the same for the same seed (Mulberry32). */
function randomOf(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}

type Random = ReturnType<typeof randomOf>

const turn = () => new Promise((resolve) => setImmediate(resolve))
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** How an answer says where it ends, and what it is on the wire. */
const FRAMINGS = {
  length: (body: Buffer) => ({ head: `content-length: ${body.length}`, wire: body }),
  chunks: (body: Buffer, random: Random) => ({
    head: 'transfer-encoding: chunked',
    wire: inChunks(body, random),
  }),
  close: (body: Buffer) => ({ head: 'connection: close', wire: body }),
}

function inChunks(body: Buffer, random: Random): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length;) {
    const part = body.subarray(at, at + 1 + random(random(3) === 0 ? 30_000 : 300))
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
    at += part.length
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

/** Sends bytes in pieces of any size, at once or with pauses between them. */
async function sendInPieces(tls: TLSSocket, bytes: Buffer, random: Random): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const size = 1 + random([40, 2_000, 100_000][random(3)] ?? 1)
    tls.write(bytes.subarray(at, at + size))
    at += size
    if (random(4) === 0) await turn()
    if (random(30) === 0) await pause(random(4))
  }
}

/** Reads an answer by fits and starts: it rests, as under load, and is held back, as by a slow worker, each by itself. */
function readByFits(answer: ProviderAnswer, connection: ProviderConnection, random: Random) {
  const parts: Buffer[] = []
  const { promise: ended, resolve } = Promise.withResolvers<'end' | 'close'>()
  answer.on('data', (bytes) => {
    parts.push(bytes)
    if (random(6) === 0) {
      connection.pause()
      setTimeout(() => connection.resume(), random(5))
    }
    if (random(6) === 0) {
      answer.pause()
      setTimeout(() => answer.resume(), random(5))
    }
  })
  // Whoever pauses it resumes it at the end.
  answer.once('end', () => connection.resume())
  answer.once('end', () => resolve('end'))
  answer.once('close', () => resolve('close'))
  return { ended, body: () => Buffer.concat(parts) }
}

it.each(Array.from({ length: 40 }, (_, index) => index + 1))(
  'answers arrive whole and in order, one after another, however they come and are read (seed %i)',
  async (seed) => {
    const random = randomOf(seed)
    let connection: ProviderConnection | undefined
    for (let round = 0; round < 6; round += 1) {
      const framings = Object.values(FRAMINGS)
      const framing = framings[random(framings.length)] ?? FRAMINGS.close
      const body = Buffer.from(
        Array.from({ length: random(2) * random(150_000) + random(3_000) }, () => random(256)),
      )
      const { head, wire } = framing(body, random)
      const hints = random(4) === 0 ? 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n' : ''
      provider.script = async (tls) => {
        const start = Buffer.from(`${hints}HTTP/1.1 200 OK\r\n${head}\r\n\r\n`)
        await sendInPieces(tls, Buffer.concat([start, wire]), random)
        if (framing === FRAMINGS.close) tls.end()
      }
      if (connection?.isOpen !== true) {
        connection = await openPinnedConnection(
          `https://127.0.0.1:${provider.port}`,
          target,
          spkiSha256,
        )
      }
      const used = connection
      const over = Promise.withResolvers<void>()
      let read: ReturnType<typeof readByFits> | undefined
      const exchange = new Exchange((answer) => {
        read = readByFits(answer, used, random)
      }, over.resolve)
      used.send({ method: 'GET', path: '/', headers: {}, body: null }, exchange)
      await exchange.begun
      expect(await read?.ended).toBe('end')
      expect(read?.body().equals(body)).toBe(true)
      await over.promise
    }
    connection?.close()
  },
)
