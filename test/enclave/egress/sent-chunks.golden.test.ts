import { createHash } from 'node:crypto'
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { requestedStream } from '../../../src/enclave/egress/requested-stream.ts'
import { SentChunks } from '../../../src/enclave/egress/sent-chunks.ts'
import type { WorkerBody } from '../../../src/enclave/egress/worker-body.ts'
import { WrittenStream } from '../../../src/enclave/egress/written-stream.ts'
import { MAX_CHUNK_BYTES, MESSAGE_KINDS } from '../../../src/protocol/link-messages.ts'
import type { StreamRecord } from '../../../src/protocol/stream-record.ts'
import type { AnswerFormat } from '../../../src/worker/completion/format.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { API_FORMATS } from '../../support/api-formats.ts'
import {
  goldenStreams,
  OPTIONS,
  providerBytes,
  type ChatStreamOptions,
} from '../../support/golden-streams.ts'
import { recordOf } from './chunk-client.ts'
import { FakeAnswer } from './fake-answer.ts'

/** Writes a provider's pieces to a body; returns the record. */
function write(
  format: AnswerFormat,
  options: ChatStreamOptions,
  pieces: readonly Uint8Array[],
  body: WorkerBody,
  ended: (record: StreamRecord) => void = () => {},
): StreamRecord {
  const requested = format.chunkFormat(options)
  if (requested === undefined) throw new Error('the daemon may write this')
  const { id, created, model, includeReasoning } = options
  const spec = {
    ...STREAM_SPEC,
    format: requested.format,
    head: { id, created, model },
    include_reasoning: includeReasoning,
  }
  const answer = new FakeAnswer()
  const stream = new WrittenStream(
    requestedStream(spec, requested.preamble ?? new Uint8Array(0)),
    answer,
    body,
    {
      joiner: new ChunkJoiner({ now: Date.now }),
      source: { pause: () => {}, resume: () => {} },
      memory: new EventMemory(),
      now: Date.now,
      log: () => {},
      ended,
      disconnected: () => {},
    },
  )
  for (const piece of pieces) answer.emit('data', Buffer.from(piece))
  answer.finish()
  return stream.stop()
}

/** What a response to the call contains, and the record. */
function answered(...[format, options, pieces]: [AnswerFormat, ChatStreamOptions, Uint8Array[]]) {
  const parts: Buffer[] = []
  const body = new Writable({
    highWaterMark: 64 * 1024 * 1024,
    write: (bytes: Buffer, _encoding, done) => {
      parts.push(bytes)
      done()
    },
  })
  const record = write(format, options, pieces, body)
  return { text: Buffer.concat(parts).toString(), record }
}

/** What comes over a connection for chunks, and the record that does. */
function sent(...[format, options, pieces]: [AnswerFormat, ChatStreamOptions, Uint8Array[]]) {
  const parts: Uint8Array[] = []
  let told: StreamRecord | undefined
  const chunks = new SentChunks(({ kind, body }) => {
    if (kind === MESSAGE_KINDS.end) told = recordOf(body)
    else parts.push(body)
  })
  write(format, options, pieces, chunks, (record) => chunks.close(record))
  let taken = 0
  for (; taken < parts.length; taken += 1) chunks.taken(parts[taken]?.length ?? 0)
  return { text: Buffer.concat(parts).toString(), record: told }
}

/** test/worker/stream/golden.test.ts cuts at every byte what both read. */
const CUT_AT: Readonly<Record<string, number>> = { chat: 11, responses: 67, messages: 67 }

describe.each(Object.entries(API_FORMATS))('in the format %s', (api, { format }) => {
  it.each(goldenStreams())(
    'the golden stream $file is sent as it would be answered, wherever it is cut',
    (golden) => {
      const options = { ...OPTIONS, ...golden.options }
      const bytes = providerBytes(golden)
      for (let cut = 0; cut <= bytes.length; cut += CUT_AT[api] ?? 1) {
        const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)]
        const { text, record } = sent(format, options, pieces)
        expect([cut, { text, record }]).toEqual([cut, answered(format, options, pieces)])
        expect(record?.client_sha256).toBe(createHash('sha256').update(text).digest('hex'))
      }
    },
  )

  it('a stream of large events is sent as it would be answered, in many pieces', () => {
    const event = (content: string, finish: string | null) => {
      const choices = [{ index: 0, delta: { content }, finish_reason: finish }]
      return Buffer.from(`data: ${JSON.stringify({ choices })}\n\n`)
    }
    const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(5 * MAX_CHUNK_BYTES))
    const pieces = [...texts.map((text) => event(text, null)), event('', 'stop')]
    const { text, record } = sent(format, OPTIONS, pieces)
    expect({ text, record }).toEqual(answered(format, OPTIONS, pieces))
    expect(record?.finish_reason).toBe('stop')
    expect(text.length).toBeGreaterThan(15 * MAX_CHUNK_BYTES)
  })
})
