import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { requestedStream } from '../../../src/enclave/egress/requested-stream.ts'
import { ProviderAnswer } from '../../../src/enclave/egress/provider-answer.ts'
import { SentChunks } from '../../../src/enclave/egress/sent-chunks.ts'
import { canWrite, sendChunks } from '../../../src/enclave/egress/write-chunks.ts'
import { WrittenStreams } from '../../../src/enclave/egress/written-streams.ts'
import {
  CHUNK_WINDOW_BYTES,
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  type LinkMessage,
} from '../../../src/protocol/link-messages.ts'
import type { StreamSpec } from '../../../src/protocol/stream-record.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { API_FORMATS } from '../../support/api-formats.ts'
import { OPTIONS } from '../../support/golden-streams.ts'
import { recordOf } from './chunk-client.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const MIB = 1024 * 1024
const ASKED_AGAIN_MS = 15_000
const LEFT_MS = 60_000
const RECORD_MS = 3_660_000
const SPEC: StreamSpec = { ...STREAM_SPEC, record_ms: RECORD_MS }

const delta = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'

interface Given {
  readonly spec?: StreamSpec
  readonly preamble?: Uint8Array
  readonly written?: WrittenStreams
  readonly memory?: EventMemory
}

function answerOf(status = 200, headers: Record<string, string> = {}) {
  const asked: string[] = []
  const answer = new ProviderAnswer(status, headers, {
    aborted: false,
    paused: false,
    reason: null,
    pause: () => void asked.push('pause'),
    resume: () => void asked.push('resume'),
    abort: () => void asked.push('abort'),
  })
  return { answer, asked }
}

/** A stream that is sent to a worker which takes what it is told to take. */
function open({ spec = SPEC, preamble = new Uint8Array(0), ...given }: Given = {}) {
  const { written = new WrittenStreams(1, () => {}), memory = new EventMemory(6 * MIB) } = given
  const sent: Pick<LinkMessage, 'kind' | 'body'>[] = []
  const chunks = new SentChunks((message) => sent.push(message))
  const { answer, asked } = answerOf()
  let taken = 0
  const ofKind = (wanted: LinkMessage['kind']) =>
    sent.filter(({ kind }) => kind === wanted).map(({ body }) => body)
  const bytes = () => Buffer.concat(ofKind(MESSAGE_KINDS.chunk))
  sendChunks(requestedStream(spec, preamble), answer, chunks, {
    open: { connection: { pause: () => {}, resume: () => {} } },
    joiner: new ChunkJoiner({ now: Date.now }),
    memory,
    written,
    now: Date.now,
    log: (event) => {
      throw new Error(event)
    },
  })
  return {
    asked,
    answer,
    chunks,
    written,
    memory,
    bytes,
    ends: () => ofKind(MESSAGE_KINDS.end).map(recordOf),
    give: (...parts: readonly string[]) => {
      for (const part of parts) answer.give(Buffer.from(part))
    },
    /** Takes all that is under way; returns how much that was. */
    take: () => {
      const underWay = bytes().length - taken
      if (underWay === 0) throw new Error('nothing is under way')
      taken += underWay
      chunks.taken(underWay)
      return underWay
    },
  }
}

const isFree = (memory: EventMemory) => {
  const all = memory.forStream('another')
  try {
    all.take(6 * MIB)
    all.giveBack()
    return true
  } catch {
    return false
  }
}

/** Responses hold their text until the end, and their record repeats it. */
function openResponse(given: Given = {}) {
  const requested = API_FORMATS['responses']?.format.chunkFormat(OPTIONS)
  if (requested === undefined) throw new Error('the daemon may write this')
  const { format, preamble } = requested
  return open({ ...given, spec: { ...SPEC, format }, ...(preamble && { preamble }) })
}

describe('a stream that is sent', () => {
  it('tells its record after all chunks, and is soon forgotten since the worker has it', () => {
    const { answer, bytes, ends, give, memory, written } = open()
    give(delta('Hello'), STOP)
    answer.finish()
    const [record] = ends()
    expect(bytes().toString()).toContain('"Hello"')
    expect(record).toMatchObject({ ending: { kind: 'complete' }, finish_reason: 'stop' })
    expect(record?.client_sha256).toBe(createHash('sha256').update(bytes()).digest('hex'))
    expect(written.hasRoom()).toBe(true)
    vi.advanceTimersByTime(ASKED_AGAIN_MS - 1)
    expect(written.has(SPEC.stream)).toBe(true)
    vi.advanceTimersByTime(1)
    expect([written.has(SPEC.stream), isFree(memory)]).toEqual([false, true])
  })

  it('holds the provider back while its worker takes nothing, and does not take it for silent', () => {
    const { answer, asked, bytes, chunks, ends, give, take } = open()
    give(delta('x'.repeat(MIB)))
    expect([bytes().length, asked]).toEqual([CHUNK_WINDOW_BYTES, ['pause']])
    vi.advanceTimersByTime(100 * SPEC.idle_ms)
    expect([bytes().length, ends(), chunks.destroyed]).toEqual([CHUNK_WINDOW_BYTES, [], false])
    expect(bytes().toString()).not.toContain('keep-alive')
    const steps: number[] = []
    while (!asked.includes('resume')) steps.push(take())
    expect(Math.max(...steps)).toBe(CHUNK_WINDOW_BYTES)
    give(delta('more'), STOP)
    answer.finish()
    while (ends().length === 0) take()
    expect(ends()).toMatchObject([{ ending: { kind: 'complete' } }])
    expect(bytes().toString()).toMatch(/x{1048576}.*"more"/s)
  })

  it('takes a provider for silent again once its worker has taken enough', () => {
    const { asked, ends, give, take } = open()
    give(delta('x'.repeat(CHUNK_WINDOW_BYTES)))
    vi.advanceTimersByTime(10 * SPEC.idle_ms)
    expect(ends()).toEqual([])
    while (!asked.includes('resume')) take()
    vi.advanceTimersByTime(2 * SPEC.idle_ms)
    expect(ends()).toMatchObject([{ ending: { kind: 'idle' }, finish_reason: null }])
  })

  it('keeps its record while a slow client takes the rest, and counts until the worker has it', () => {
    const { answer, ends, give, take, written } = open()
    give(delta('x'.repeat(2 * CHUNK_WINDOW_BYTES)), STOP)
    answer.finish()
    vi.advanceTimersByTime(RECORD_MS - 1)
    expect([ends(), written.hasRoom()]).toEqual([[], false])
    while (ends().length === 0) take()
    expect([ends(), written.hasRoom()]).toMatchObject([[{ finish_reason: 'stop' }], true])
  })

  it('gives the rest, and then its record, to a client that outlasts the time of the record', () => {
    const { answer, ends, give, take, written } = open()
    give(delta('x'.repeat(2 * CHUNK_WINDOW_BYTES)), STOP)
    answer.finish()
    vi.advanceTimersByTime(RECORD_MS)
    expect([written.has(SPEC.stream), written.hasRoom()]).toEqual([false, true])
    while (ends().length === 0) take()
    expect(ends()).toMatchObject([{ finish_reason: 'stop' }])
  })

  it('still gives all that was written, and its record twice, where the worker ends it', () => {
    const { bytes, ends, give, take, written } = open()
    give(delta('x'.repeat(2 * CHUNK_WINDOW_BYTES)))
    const record = written.end(SPEC.stream)
    expect(record).toMatchObject({ ending: { kind: 'stopped' }, finish_reason: null })
    expect(ends()).toEqual([])
    while (ends().length === 0) take()
    expect(ends()).toEqual([record])
    expect(record?.client_sha256).toBe(createHash('sha256').update(bytes()).digest('hex'))
  })
})

describe('a record that is too large for a message', () => {
  it('is to be asked for, for all of its time, and counts as long', () => {
    const { answer, ends, give, memory, take, written } = openResponse()
    give(delta('x'.repeat(MAX_MESSAGE_BODY_BYTES)), STOP)
    answer.finish()
    while (ends().length === 0) take()
    expect([ends(), written.hasRoom()]).toEqual([[undefined], false])
    vi.advanceTimersByTime(RECORD_MS - 1)
    expect([written.has(SPEC.stream), written.hasRoom(), isFree(memory)]).toEqual([
      true,
      false,
      false,
    ])
    expect(written.end(SPEC.stream)).toMatchObject({ finish_reason: 'stop' })
    vi.advanceTimersByTime(ASKED_AGAIN_MS)
    expect([written.has(SPEC.stream), written.hasRoom(), isFree(memory)]).toEqual([
      false,
      true,
      true,
    ])
  })
})

describe('a stream that is cut', () => {
  it('ends as stopped, tells its record, and is soon forgotten since the worker has it', () => {
    const { asked, chunks, ends, give, memory, written } = openResponse()
    give(delta('Hello'))
    chunks.cut()
    expect(ends()).toMatchObject([{ ending: { kind: 'stopped' }, finish_reason: null }])
    expect(written.hasRoom()).toBe(true)
    vi.advanceTimersByTime(ASKED_AGAIN_MS - 1)
    expect(written.has(SPEC.stream)).toBe(true)
    vi.advanceTimersByTime(1)
    expect([written.has(SPEC.stream), isFree(memory)]).toEqual([false, true])
    expect(asked).not.toContain('resume')
  })

  it.each([
    ['with its connection can be asked for within its time', 0],
    ['with its connection is forgotten after that', 1],
  ])('%s', (_what, more) => {
    const { asked, chunks, ends, give, memory, written } = openResponse()
    give(delta('x'.repeat(300_000)))
    chunks.drop()
    expect([ends(), written.hasRoom(), isFree(memory)]).toEqual([[], false, false])
    vi.advanceTimersByTime(LEFT_MS - 1 + more)
    const record = written.end(SPEC.stream)
    expect(record?.ending).toEqual(more === 0 ? { kind: 'stopped' } : undefined)
    vi.advanceTimersByTime(ASKED_AGAIN_MS)
    expect([written.has(SPEC.stream), written.hasRoom(), isFree(memory)]).toEqual([
      false,
      true,
      true,
    ])
    expect(asked).not.toContain('resume')
  })

  it('lets the provider go', async () => {
    const { asked, chunks, give } = open()
    give(delta('Hello'))
    chunks.cut()
    await Promise.resolve()
    expect(asked).toEqual(['abort'])
  })

  it('after its provider has ended tells how that was', () => {
    const { answer, chunks, ends, give } = open()
    give(delta('x'.repeat(2 * CHUNK_WINDOW_BYTES)), STOP)
    answer.finish()
    chunks.cut()
    expect(ends()).toMatchObject([{ ending: { kind: 'complete' }, finish_reason: 'stop' }])
  })

  it('with its connection after its provider has ended keeps how that was, for a worker that asks at once', () => {
    const { answer, chunks, ends, give, written } = open()
    give(delta('x'.repeat(2 * CHUNK_WINDOW_BYTES)), STOP)
    answer.finish()
    chunks.drop()
    vi.advanceTimersByTime(LEFT_MS - 1)
    expect(written.end(SPEC.stream)).toMatchObject({ ending: { kind: 'complete' } })
    expect(ends()).toEqual([])
  })

  it('whose record is too large for a message keeps it, for a worker that asks at once', () => {
    const { answer, chunks, ends, give, written } = openResponse()
    give(delta('x'.repeat(MAX_MESSAGE_BODY_BYTES)), STOP)
    answer.finish()
    chunks.cut()
    expect(ends()).toEqual([undefined])
    vi.advanceTimersByTime(LEFT_MS - 1)
    expect(written.end(SPEC.stream)).toMatchObject({ ending: { kind: 'complete' } })
  })

  it('before its provider has said anything is known to the worker that asks', () => {
    const { chunks, written } = open()
    chunks.cut()
    expect(written.end(SPEC.stream)).toMatchObject({ ending: { kind: 'stopped' } })
  })
})

it('a stream whose name is in use is refused, and its number is free again; the first one is as it was', () => {
  const first = open()
  first.give(delta('Hello'))
  const sent: unknown[] = []
  const chunks = new SentChunks((message) => sent.push(message))
  const closed = vi.fn<() => void>()
  chunks.once('close', closed)
  const again = () =>
    sendChunks(requestedStream(SPEC, new Uint8Array(0)), answerOf().answer, chunks, {
      open: { connection: { pause: () => {}, resume: () => {} } },
      joiner: new ChunkJoiner({ now: Date.now }),
      memory: first.memory,
      written: first.written,
      now: Date.now,
      log: () => {},
    })
  expect(again).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: 'the stream is not new' }),
  )
  // Its call says so. An end would stand for the first one's.
  expect([chunks.destroyed, closed.mock.calls.length, sent]).toEqual([true, 1, []])
  first.give(STOP)
  first.answer.finish()
  expect(first.ends()).toMatchObject([{ finish_reason: 'stop' }])
})

describe('chunks can be written', () => {
  const room = new WrittenStreams(1, () => {})
  const none = new WrittenStreams(0, () => {})

  it.each<[boolean, number, Record<string, string>, WrittenStreams]>([
    [true, 200, {}, room],
    [true, 200, { 'content-encoding': ' Identity ' }, room],
    [false, 200, { 'content-encoding': 'gzip' }, room],
    [false, 201, {}, room],
    [false, 429, {}, room],
    [false, 200, {}, none],
  ])('%s, for an answer %i with %j', (can, status, headers, written) => {
    expect(canWrite(answerOf(status, headers).answer, written)).toBe(can)
  })
})
