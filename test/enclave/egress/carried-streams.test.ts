import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { printStreamSpec } from '../../../src/protocol/stream-record.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { startEgressLink } from '../../support/egress-link.ts'
import { listen } from '../../support/listen.ts'
import { provenAlways } from '../../support/proven-always.ts'
import { startRecordingProvider } from '../../support/recording-provider.ts'
import { standstill } from '../../support/standstill.ts'

/** Streams between a provider and a worker that stop in the middle: each comes to its end. */

const closing: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** The daemon's egress to one provider. */
async function carry(
  { port, tls }: { readonly port: number; readonly tls: DaemonTls },
  maxStreams = 1_000,
) {
  const logged: unknown[] = []
  const egress = createProviderEgress({
    proofs: provenAlways('nova', `https://127.0.0.1:${port}/v1`, tls.spkiSha256),
    connectMs: () => 30_000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams,
    now: Date.now,
    log: (event, fields) => void logged.push({ event, ...fields }),
  })
  closing.push(() => egress.close())
  const link = await startEgressLink(egress)
  closing.push(() => link.close())
  return { egress, link, logged }
}

const spec = (stream: string) => ({
  'x-cmr-chunks': printStreamSpec({ ...STREAM_SPEC, stream }),
})

const DELTA = `data: {"choices":[{"index":0,"delta":{"content":"${'word '.repeat(200)}"}}]}\n\n`
const FINISH =
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

/** As many deltas as no chain of buffers between provider and reader holds. */
const DELTAS = 32 * 1024

describe('a written stream', () => {
  it('comes whole to a worker that stops reading again and again, and holds the provider back meanwhile', async () => {
    let sent = 0
    const provider = await startRecordingProvider((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const fill = () => {
        while (sent < DELTAS) {
          sent += 1
          if (!response.write(DELTA)) return
        }
        response.end(FINISH)
      }
      response.on('drain', fill)
      fill()
    })
    closing.push(() => provider.close())
    const { egress, link } = await carry(provider)
    const stream = randomUUID()
    const answer = await link.open('nova', 'a prompt', undefined, spec(stream))
    expect(await standstill(() => sent)).toBeLessThan(DELTAS)
    const hash = createHash('sha256')
    let deltas = 0
    let unread = 12 * 1024 * 1024
    for await (const part of answer) {
      if (!Buffer.isBuffer(part)) throw new Error('the body is not bytes')
      hash.update(part)
      deltas += part.toString('latin1').split('"content":"word').length - 1
      unread -= part.length
      if (unread > 0) continue
      unread = 12 * 1024 * 1024
      await standstill(() => sent)
    }
    const record = egress.endStream(stream)
    expect(record).toMatchObject({ ending: { kind: 'complete' }, finish_reason: 'stop' })
    expect(record?.client_sha256).toBe(hash.digest('hex'))
    // One may be cut by two reads.
    expect(deltas).toBeGreaterThan(DELTAS * 0.9)
  }, 120_000)

  it('ends when its worker leaves while it is held back', async () => {
    let sent = 0
    const left = Promise.withResolvers<void>()
    const provider = await startRecordingProvider((_request, response) => {
      response.once('close', () => left.resolve())
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const fill = () => {
        do sent += 1
        while (response.write(DELTA))
      }
      response.on('drain', fill)
      fill()
    })
    closing.push(() => provider.close())
    const { egress, link } = await carry(provider)
    const stream = randomUUID()
    const answer = await link.open('nova', 'a prompt', undefined, spec(stream))
    answer.on('error', () => {})
    await standstill(() => sent)
    answer.destroy()
    await once(answer, 'close')
    await left.promise
    expect(egress.endStream(stream)?.finish_reason).toBeNull()
  }, 120_000)
})

describe('streams beyond those that may be open or not settled', () => {
  it('are relayed for the worker to write, which an operator is told once, and no record is lost', async () => {
    const provider = await startRecordingProvider((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(DELTA + FINISH)
    })
    closing.push(() => provider.close())
    const { egress, link, logged } = await carry(provider, 2)
    const streams = Array.from({ length: 4 }, () => randomUUID())
    const answers: { written: unknown; text: string }[] = []
    for (const stream of streams) {
      const { headers, text } = await link.post('nova', 'a prompt', spec(stream))
      answers.push({ written: headers['x-cmr-chunks'], text })
    }
    expect(answers.map(({ written }) => written)).toEqual([
      'written',
      'written',
      undefined,
      undefined,
    ])
    expect(answers[3]?.text).toBe(DELTA + FINISH)
    expect(logged).toEqual([
      {
        event: 'streams_left_to_workers',
        reason: '2 streams are open or not settled by their workers',
      },
    ])
    const finishes = streams.map((stream) => egress.endStream(stream)?.finish_reason)
    expect(finishes).toEqual(['stop', 'stop', undefined, undefined])
    const { headers } = await link.post('nova', 'a prompt', spec(randomUUID()))
    expect(headers['x-cmr-chunks']).toBe('written')
  })
})

describe('a call', () => {
  it('ends where the provider closes each connection right after its handshake', async () => {
    const tls = await makeTlsIdentity([], new Date())
    const provider = createServer({ key: tls.keyPem, cert: tls.certPem }, (socket) => {
      socket.on('error', () => {})
      socket.destroy()
    })
    const port = await listen(provider)
    closing.push(() => new Promise((resolve) => provider.close(() => resolve())))
    const { link } = await carry({ port, tls })
    const calls = Array.from({ length: 50 }, () => link.post('nova', 'a prompt'))
    for (const { status, headers } of await Promise.all(calls)) {
      expect(`${status} ${String(headers['x-cmr-egress-error'])}`).toBe('502 provider_unreachable')
    }
  })
})
