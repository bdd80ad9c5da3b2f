import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Readable, Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { requestedStream } from '../../../src/enclave/egress/requested-stream.ts'
import { WrittenStream } from '../../../src/enclave/egress/written-stream.ts'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import {
  streamRecordSchema,
  type StreamSpec,
  type StreamRecord,
} from '../../../src/protocol/stream-record.ts'
import type { AnswerFormat, LastEvents } from '../../../src/worker/completion/format.ts'
import { billedUsage } from '../../../src/worker/stream/billed-usage.ts'
import { chatChunks } from '../../../src/worker/stream/chat-chunks.ts'
import { countedAnswer } from '../../../src/worker/stream/streamed-answer.ts'
import { UsageTally } from '../../../src/worker/stream/usage-tally.ts'
import { BOUND, BROKEN_OFF, API_FORMATS, writtenHere } from '../../support/api-formats.ts'
import {
  goldenStreams,
  OPTIONS,
  providerBytes,
  replay,
  SERVICE,
  type ChatStreamOptions,
} from '../../support/golden-streams.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

function specOf(
  options: ChatStreamOptions = OPTIONS,
  limits: Partial<StreamSpec> = {},
): StreamSpec {
  const { id, created, model, includeReasoning } = options
  return {
    stream: '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1',
    owner: 'cus_1',
    head: { id, created, model },
    format: { door: 'chat' },
    billing: {
      prompt_estimate: BOUND.promptEstimate,
      max_prompt_tokens: BOUND.promptTokens,
      max_completion_tokens: BOUND.completionTokens,
    },
    include_reasoning: includeReasoning,
    idle_ms: 60_000,
    keep_alive_ms: 60_000,
    record_ms: 3_660_000,
    ...limits,
  }
}

/** A written stream between an answer and a response that are driven by hand. */
function open(
  spec: StreamSpec = specOf(),
  room?: number,
  joiner = new ChunkJoiner({ now: Date.now }),
  memory = new EventMemory(),
  preamble: Uint8Array = new Uint8Array(0),
  requested = requestedStream(spec, preamble),
) {
  const answer = new Readable({ read: () => {} })
  const sent: Buffer[] = []
  const taken: (() => void)[] = []
  const response = new Writable({
    highWaterMark: room ?? 64 * 1024 * 1024,
    write: (bytes: Buffer, _encoding, done) => {
      sent.push(bytes)
      if (room === undefined) done()
      else taken.push(done)
    },
  })
  let ends = 0
  const logged: string[] = []
  const dropped: (() => void)[] = []
  const stream = new WrittenStream(requested, answer, response, {
    joiner,
    source: { pause: () => {}, resume: () => {} },
    memory,
    now: Date.now,
    log: (event) => logged.push(event),
    ended: (_record, _ms, drop) => {
      ends += 1
      dropped.push(drop)
    },
    disconnected: () => {},
  })
  return {
    answer,
    response,
    stream,
    logged,
    give: (bytes: Uint8Array) => void answer.emit('data', Buffer.from(bytes)),
    over: () => void answer.emit('end'),
    /** Its record is forgotten. */
    drop: () => {
      for (const drop of dropped.splice(0)) drop()
    },
    /** Lets the worker take what was written. */
    drain: () => {
      for (const done of taken.splice(0)) done()
    },
    get text() {
      return fromUtf8(Buffer.concat(sent))
    },
    get ends() {
      return ends
    },
  }
}

/** What a client sees of a stream that was read in these pieces, with the last event that the worker adds. */
function written(
  format: AnswerFormat,
  pieces: readonly Uint8Array[],
  options: ChatStreamOptions,
  byDefault?: string,
) {
  const requested = format.chunkFormat(options)
  if (requested === undefined) throw new Error('the daemon may write this')
  const spec = specOf(options, { format: requested.format })
  const opened = open(spec, undefined, undefined, undefined, requested.preamble)
  for (const piece of pieces) opened.give(piece)
  opened.over()
  const record = streamRecordSchema.parse(JSON.parse(JSON.stringify(opened.stream.stop())))
  const { ending } = record
  const broken = ending.kind === 'broken'
  // Of a broken stream the provider's digest has no use.
  const digested =
    record.client_sha256 === sha256(utf8(opened.text)) &&
    (broken || record.provider_sha256 === sha256(Buffer.concat(pieces)))
  // Where the first output and an error come in one read, nothing is sent, so that another route can be tried.
  const untried = broken && opened.text === '' ? byDefault : undefined
  return {
    text: untried ?? opened.text + lastEvent(record, format.lastEvents(options)),
    facts: { outcome: broken ? ending.reason : ending.kind, digested, ends: opened.ends },
  }
}

function lastEvent(record: StreamRecord, last: LastEvents): string {
  if (record.ending.kind === 'broken') return last.fail(record.tail, BROKEN_OFF)
  const counted = {
    finishReason: record.finish_reason ?? undefined,
    tally: UsageTally.of(record.counts),
    providerResponseId: record.provider_response_id ?? undefined,
    tail: record.tail,
  }
  const answer = countedAnswer(counted, last)
  const { usage } = billedUsage(answer, BOUND)
  expect(answer.finish(usage)).toHaveLength(0)
  return fromUtf8(answer.close(SERVICE, usage))
}

/** test/worker/stream/golden.test.ts cuts at every byte what both read. */
const CUT_AT: Readonly<Record<string, number>> = { chat: 5, responses: 37, messages: 37 }

describe.each(Object.entries(API_FORMATS))('in the format %s', (api, { format }) => {
  describe.each(goldenStreams())('the golden stream $file', (golden) => {
    const options = { ...OPTIONS, ...golden.options }
    const bytes = providerBytes(golden)
    const whole = writtenHere(format, [bytes], options)
    const { outcome: known } = replay([bytes], options)
    const outcome = 'broken' in known ? known.broken : 'complete'
    const right = { text: whole, facts: { outcome, digested: true, ends: 1 } }

    it('is written as the worker would write it, wherever it is cut', () => {
      const step = CUT_AT[api] ?? 1
      const seen = new Set<string>()
      for (let cut = 0; cut <= bytes.length; cut += step) {
        const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)]
        seen.add(JSON.stringify(written(format, pieces, options, whole)))
      }
      expect([...seen]).toEqual([JSON.stringify(right)])
    })

    it('is written the same when its bytes come one by one', () => {
      const bytewise = Array.from(bytes, (byte) => Uint8Array.of(byte))
      expect(written(format, bytewise, options, whole)).toEqual(right)
    })
  })
})

const chunk = (delta: object, finish: string | null = null) =>
  utf8(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)

const ROLE = chunk({ role: 'assistant', content: '' })
const TEXT = chunk({ content: 'Hello' })
const STOP = chunk({}, 'stop')

describe('a stream that the daemon writes', () => {
  it('sends nothing before the commit point', () => {
    const opened = open()
    opened.give(ROLE)
    expect(opened.text).toBe('')
    opened.give(TEXT)
    expect(opened.text).toContain('"Hello"')
    opened.stream.stop()
  })

  it('counts what the provider has produced when the worker leaves, and lets the provider go', async () => {
    const opened = open()
    opened.give(TEXT)
    const closed = new Promise((resolve) => opened.response.once('close', resolve))
    opened.response.destroy()
    await closed
    expect(opened.answer.destroyed).toBe(true)
    const { ending, counts, finish_reason: reason } = opened.stream.stop()
    expect({ ending, reason }).toEqual({ ending: { kind: 'stopped' }, reason: null })
    expect(counts.uncounted_text_bytes).toBe(5)
  })

  it('ends after a complete event when the worker ends it', () => {
    const opened = open()
    opened.give(TEXT)
    opened.give(chunk({ content: ' again' }).subarray(0, 20))
    const record = opened.stream.stop()
    expect(record.ending).toEqual({ kind: 'stopped' })
    expect(opened.response.writableEnded).toBe(true)
    expect(opened.text.endsWith('\n\n')).toBe(true)
    opened.give(TEXT)
    expect(opened.stream.stop()).toEqual(record)
  })

  it.each([
    ['lost', [TEXT], null],
    ['complete', [TEXT, STOP], 'stop'],
  ])('whose connection breaks is %s, by whether it had a finish reason', (kind, pieces, reason) => {
    const opened = open()
    for (const piece of pieces) opened.give(piece)
    opened.answer.emit('close')
    const { ending, finish_reason: finish } = opened.stream.stop()
    expect({ ending, finish }).toEqual({ ending: { kind }, finish: reason })
  })

  it.each([
    ['idle', [TEXT]],
    ['complete', [TEXT, STOP, utf8('data: {"choices":[],"usage":{"completion_tokens":3}}\n\n')]],
  ])(
    'whose provider falls silent is %s, by whether it had a finish reason',
    async (kind, pieces) => {
      const opened = open(specOf(OPTIONS, { idle_ms: 20 }))
      for (const piece of pieces) opened.give(piece)
      await new Promise((resolve) => opened.response.once('finish', resolve))
      expect(opened.stream.stop().ending).toEqual({ kind })
    },
  )

  it('does not take a client that does not read for a silent provider, and sends it no comments', async () => {
    const opened = open(specOf(OPTIONS, { idle_ms: 50, keep_alive_ms: 150 }), 1)
    opened.give(TEXT)
    expect(opened.answer.isPaused()).toBe(true)
    await delay(400)
    expect(opened.ends).toBe(0)
    expect(opened.text).not.toContain('keep-alive')
    opened.drain()
    await expect.poll(() => opened.answer.isPaused()).toBe(false)
    await new Promise((resolve) => {
      opened.response.once('finish', resolve)
      const draining = setInterval(opened.drain, 5)
      opened.response.once('finish', () => clearInterval(draining))
    })
    expect(opened.stream.stop().ending).toEqual({ kind: 'idle' })
  })

  it('does not take one for it either whose chunks were joined and sent later', async () => {
    const joiner = new ChunkJoiner({ now: Date.now, chunksPerSecond: 1 })
    const opened = open(specOf(OPTIONS, { idle_ms: 600 }), 1_024, joiner)
    opened.give(TEXT)
    opened.give(utf8(`data: {"choices":[{"delta":{"content":"${'x'.repeat(2_000)}"}}]}\n\n`))
    await expect.poll(() => opened.answer.isPaused()).toBe(true)
    await delay(1_500)
    expect(opened.ends).toBe(0)
    opened.stream.stop()
  })

  it('sends comments while the provider is silent, which are part of the digest', async () => {
    const opened = open(specOf(OPTIONS, { keep_alive_ms: 10 }))
    opened.give(TEXT)
    await expect.poll(() => opened.text).toMatch(/Hello.*\n\n(: keep-alive\n\n){2,}$/s)
    const record = opened.stream.stop()
    expect(record.client_sha256).toBe(sha256(utf8(opened.text)))
  })
})

describe('events too large for what every stream may hold', () => {
  const MIB = 1024 * 1024
  const begun = utf8(`data: {"choices":[{"delta":{"content":"${'x'.repeat(900_000)}`)

  it('share a total, each customer a part of it, and the stream that exceeds it ends as broken, without output', () => {
    const memory = new EventMemory(6 * MIB)
    const [first, ...others] = Array.from({ length: 8 }, (_, index) =>
      open(specOf(OPTIONS, { owner: `cus_${index}` }), undefined, undefined, memory),
    )
    const last = others.pop()
    if (!first || !last) throw new Error('eight streams were opened')
    for (const stream of [first, ...others, last]) stream.give(begun)
    expect(last.stream.stop().ending).toEqual({ kind: 'broken', reason: 'no_memory' })
    expect(last.text).toBe('')
    for (const { stream } of others) expect(stream.stop().ending.kind).toBe('stopped')
    first.give(utf8('"},"finish_reason":"stop"}]}\n\n'))
    first.over()
    expect(first.stream.stop().ending).toEqual({ kind: 'complete' })
  })

  it.each(['complete', 'stopped'])('give their memory back when the stream is %s', (how) => {
    const memory = new EventMemory(6 * MIB)
    const one = open(specOf(), undefined, undefined, memory)
    one.give(begun)
    if (how === 'complete') one.give(utf8('"},"finish_reason":"stop"}]}\n\n'))
    if (how === 'complete') one.over()
    expect(one.stream.stop().ending).toEqual({ kind: how })
    expect(() => memory.forStream('cus_2').take(6 * MIB)).not.toThrow()
  })
})

describe('text that is held until the end of an answer', () => {
  const MIB = 1024 * 1024

  /** A response of which nothing was sent yet. */
  function opened(memory: EventMemory) {
    const requested = API_FORMATS['responses']?.format.chunkFormat(OPTIONS)
    if (requested === undefined) throw new Error('the daemon may write this')
    const spec = specOf(OPTIONS, { format: requested.format })
    return open(spec, undefined, undefined, memory, requested.preamble)
  }

  /** A response of which `characters` were sent, in pieces that are no large events unless `size` makes them such. */
  function held(memory: EventMemory, characters: number, size = 10_000) {
    const response = opened(memory)
    const piece = chunk({ content: 'x'.repeat(size) })
    for (let sent = 0; sent < characters; sent += size) response.give(piece)
    return response
  }

  it('counts in the total, and the stream that exceeds it is cut after complete events', () => {
    const memory = new EventMemory(MIB)
    const { stream, text } = held(memory, 2_000_000)
    const { ending, tail } = stream.stop()
    expect(ending).toEqual({ kind: 'broken', reason: 'no_memory' })
    expect(text.endsWith('\n\n')).toBe(true)
    expect(text.split('event: ')).toHaveLength(tail.events + 1)
  })

  it('gives its memory back when the record is dropped, not before', () => {
    const memory = new EventMemory(MIB)
    const response = held(memory, 500_000)
    response.give(STOP)
    response.over()
    expect(response.stream.stop().ending).toEqual({ kind: 'complete' })
    expect(() => memory.forStream('cus_2').take(MIB)).toThrow('no memory is left')
    response.drop()
    expect(() => memory.forStream('cus_2').take(MIB)).not.toThrow()
  })

  it('counts items, too, however short they are', () => {
    const response = opened(new EventMemory(MIB))
    for (let item = 0; item < 2_000; item += 1) {
      response.give(chunk({ reasoning: 'r' }))
      response.give(chunk({ content: 'c' }))
    }
    expect(response.stream.stop().ending).toEqual({ kind: 'broken', reason: 'no_memory' })
  })

  it('takes 64 MiB with its items at most for one answer, whatever is left', () => {
    const memory = new EventMemory()
    const response = opened(memory)
    const items = [chunk({ reasoning: 'r' }), chunk({ content: 'c' })]
    const bytes = Buffer.concat(Array.from({ length: 1_000 }, () => items).flat())
    for (let given = 0; given < 60; given += 1) response.give(bytes)
    expect(response.stream.stop().ending).toEqual({ kind: 'broken', reason: 'no_memory' })
    expect(() => memory.forStream('cus_2').take(190 * MIB)).not.toThrow()
  })
})

it('a stream whose closing events cannot be written ends all the same, as broken', () => {
  const spec = specOf()
  const openWriter = () => ({
    ...chatChunks(spec.head),
    finish: () => {
      throw new RangeError('Invalid string length')
    },
  })
  const opened = open(spec, undefined, undefined, undefined, undefined, { spec, openWriter })
  opened.give(TEXT)
  opened.give(STOP)
  opened.over()
  expect(opened.stream.stop().ending).toEqual({ kind: 'broken', reason: 'no_memory' })
  expect(opened.response.writableEnded).toBe(true)
  expect([opened.ends, opened.logged]).toEqual([1, ['link_failed']])
})

it('a specification whose opening is malformed is refused', () => {
  const format = { door: 'responses', encrypted_content: false, ahead_bytes: 2 } as const
  expect(() => requestedStream(specOf(OPTIONS, { format }), utf8('{}'))).toThrow(
    'the preamble of the request is malformed',
  )
})
