import { afterEach, describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import { toHex } from '../../../src/protocol/bytes.ts'
import { printStreamSpec } from '../../../src/protocol/stream-record.ts'
import { startEgressLink, type EgressLink } from '../../support/egress-link.ts'
import { goldenStreams, providerBytes, replay } from '../../support/golden-streams.ts'
import { proofsOf } from '../../support/proven-channel.ts'
import {
  startRecordingProvider,
  type RecordingProvider,
  type Respond,
} from '../../support/recording-provider.ts'

const PROMPT = 'a prompt'

let provider: RecordingProvider
let link: EgressLink
let egress: Egress

const OUTPUT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

/** So that every chunk after the first output waits until its stream has sent nothing for a quarter of a second. */
const slowJoiner = () => new ChunkJoiner({ now: Date.now, chunksPerSecond: 1 })

describe('a stream of events whose chunks are joined', () => {
  afterEach(async () => {
    egress.close()
    await link.close()
    await provider.close()
  })

  async function set(respond: Respond): Promise<void> {
    provider = await startRecordingProvider(respond)
    const baseUrl = `https://127.0.0.1:${provider.port}/v1`
    const reach = { provider: 'nova', baseUrl, apiKey: 'key', webPki: false }
    const proofs = proofsOf(reach, [provider.tls.spkiSha256])
    egress = createProviderEgress({
      proofs,
      connectMs: () => 10_000,
      joiner: slowJoiner(),
      maxStreams: 1_000,
      now: Date.now,
      log: () => {},
    })
    link = await startEgressLink(egress)
  }

  const read = async (answer: AsyncIterable<Buffer>, parts: Buffer[] = []) => {
    for await (const part of answer) parts.push(part)
    return parts
  }

  it('brings what the provider sent before it broke off, and is broken then', async () => {
    await set((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(OUTPUT)
      response.write('data: 1\n\n')
      response.write('data: 2\n\n', () => response.destroy())
    })
    const parts: Buffer[] = []
    await expect(read(await link.open('nova', PROMPT), parts)).rejects.toThrow('aborted')
    expect(Buffer.concat(parts).toString()).toBe(`${OUTPUT}data: 1\n\ndata: 2\n\n`)
  })

  it('is ended at the provider when the worker leaves while chunks wait', async () => {
    const gone = Promise.withResolvers<void>()
    await set((_request, response) => {
      response.on('close', () => gone.resolve())
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(OUTPUT)
      response.write('data: 1\n\n')
    })
    const abort = new AbortController()
    const answer = await link.open('nova', PROMPT, abort.signal)
    answer.on('error', () => {})
    answer.once('data', () => abort.abort())
    await expect(gone.promise).resolves.toBeUndefined()
  })

  it('brings every golden stream byte by byte as it was sent, and the same answer comes of it', async () => {
    const golden = goldenStreams().map(({ file, ...stream }) => ({
      file,
      bytes: providerBytes(stream),
    }))
    const PIECE = 16
    await set(async (request, response) => {
      const name = request.headers['x-file']
      const bytes = golden.find(({ file }) => file === name)?.bytes ?? Buffer.from('unknown')
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let at = 0; at < bytes.length; at += PIECE) {
        response.write(bytes.subarray(at, at + PIECE))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    let pieces = 0
    let reads = 0
    for (const { file, bytes } of golden) {
      const parts = await read(await link.open('nova', PROMPT, undefined, { 'x-file': file }))
      expect([file, Buffer.concat(parts).toString('hex')]).toEqual([file, toHex(bytes)])
      expect(outcomeOf(replay(parts))).toEqual(outcomeOf(replay([bytes])))
      pieces += bytes.length / PIECE
      reads += parts.length
    }
    expect(reads).toBeLessThan(pieces)
  })

  it('writes the chunks of a stream where it is asked to, and gives the record, also when it is asked again', async () => {
    await set((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'x-cmr-chunks': 'forged' })
      response.write('data: {"id":"p1","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
      response.end(
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      )
    })
    const stream = '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1'
    const head = { id: 'chatcmpl-1', created: 1, model: 'nova/глм' }
    const limits = {
      owner: 'cus_1',
      format: { door: 'chat' as const },
      billing: { prompt_estimate: 7, max_prompt_tokens: 1_000, max_completion_tokens: 1_000 },
      include_reasoning: true,
      idle_ms: 60_000,
      keep_alive_ms: 60_000,
      record_ms: 60_000,
    }
    const spec = { 'x-cmr-chunks': printStreamSpec({ stream, head, ...limits }) }
    const answer = await link.post('nova', PROMPT, spec)
    expect(answer.headers['x-cmr-chunks']).toBe('written')
    expect(answer.headers['x-cmr-evidence-sha256']).toBe('e0'.repeat(32))
    expect(answer.text).toContain(
      '"model":"nova/глм","choices":[{"index":0,"delta":{"content":"a"}',
    )
    expect(answer.text).not.toContain('p1')
    expect(provider.received()).not.toContain('x-cmr')
    const record = egress.endStream(stream)
    expect(record).toMatchObject({
      ending: { kind: 'complete' },
      finish_reason: 'stop',
      provider_response_id: 'p1',
    })
    expect(egress.endStream(stream)).toEqual(record)
    const forged = await link.post('nova', PROMPT)
    expect(forged.headers).not.toHaveProperty('x-cmr-chunks')
  })

  it.each([100, 200_000])(
    'keeps what precedes the request for itself, and refuses a call that ends before it (a body of %i bytes)',
    async (length) => {
      await set((request, response) => {
        request.resume()
        request.on('end', () => response.writeHead(500).end())
      })
      const preamble = JSON.stringify({ opening: { text: 'event: x\n\n', count: 1 }, tools: [] })
      const headersFor = (ahead_bytes: number) => ({
        'x-cmr-chunks': printStreamSpec({
          stream: '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1',
          owner: 'cus_1',
          head: { id: 'resp_1', created: 1, model: 'm' },
          format: { door: 'responses', encrypted_content: false, ahead_bytes },
          billing: { prompt_estimate: 7, max_prompt_tokens: 1_000, max_completion_tokens: 1_000 },
          include_reasoning: true,
          idle_ms: 60_000,
          keep_alive_ms: 60_000,
          record_ms: 60_000,
        }),
      })
      const prompt = 'p'.repeat(length)
      const answer = await link.post('nova', preamble + prompt, headersFor(preamble.length))
      expect(answer.status).toBe(500)
      expect(provider.received()).toContain(`content-length: ${length}`)
      expect(provider.received().endsWith(`\r\n\r\n${prompt}`)).toBe(true)
      const short = await link.post('nova', prompt, headersFor(length + 1))
      const error = { code: 'invalid_request', message: 'the request broke off' }
      expect(short).toMatchObject({ status: 400, text: JSON.stringify({ error }) })
    },
  )

  it.each(['', '%', '%7B%7D', 'written'])(
    'with the malformed specification %j is refused',
    async (given) => {
      await set((_request, response) => void response.end())
      const answer = await link.post('nova', PROMPT, { 'x-cmr-chunks': given })
      const error = {
        code: 'invalid_request',
        message: 'the specification of the stream is malformed',
      }
      expect(answer).toMatchObject({ status: 400, text: JSON.stringify({ error }) })
      expect(provider.connections()).toBe(0)
    },
  )
})

const outcomeOf = ({ text, outcome }: ReturnType<typeof replay>) => ({ text, outcome })
