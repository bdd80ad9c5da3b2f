import { createParser } from 'eventsource-parser'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { concatBytes, utf8 } from '../../../src/protocol/bytes.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import {
  EventFramer,
  MAX_EVENT_BYTES,
  type ServerSentEvent,
} from '../../../src/worker/stream/event-framer.ts'
import { cpuMs } from '../../support/cpu-time.ts'

function frame(reads: readonly Uint8Array[]): ServerSentEvent[] {
  const events: ServerSentEvent[] = []
  const framer = new EventFramer((event) => void events.push(event))
  for (const read of reads) framer.push(read)
  return events
}

function dataOf(text: string): string[] {
  return frame([utf8(text)]).map((event) => event.data)
}

function reasonOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof BrokenStream) return error.reason
    throw error
  }
  return 'none'
}

describe('the rules of the HTML Standard', () => {
  test.each([
    ['data: a\n\n', ['a']],
    ['data: a\r\rdata: b\r\n\r\n', ['a', 'b']],
    ['data: a\r\n\ndata: b\n\r\n', ['a', 'b']],
    ['\uFEFFdata: a\n\n', ['a']],
    ['\uFEFF\uFEFFdata: a\n\n', []],
    ['data: a\n\n\uFEFFdata: b\n\n', ['a']],
    ['data:a\ndata: b\ndata:  c\n\n', ['a\nb\n c']],
    ['data\n\ndata\ndata\n\ndata:', ['', '\n']],
    [': comment\n\n:\n\n', []],
    [' data: a\n\nDATA: b\n\ndata2: c\n\ndat: d\n\n', []],
    ['id: 1\nretry: 5\nother\nevent: x\ndata: a\n\n', ['a']],
    ['data: a\n\n\n\n', ['a']],
    ['data: unfinished\n', []],
  ])('%j dispatches %j', (text, expected) => {
    expect(dataOf(text)).toEqual(expected)
  })

  test('only the last event field of an event names it', () => {
    const text = 'event: error\ndata: a\n\ndata: b\n\nevent: error\nevent: x\ndata: c\n\n'
    expect(frame([utf8(text)]).map((event) => event.namedError)).toEqual([true, false, false])
  })

  test('a name ends with its event, even one without data', () => {
    expect(frame([utf8('event: error\n\ndata: a\n\n')])).toEqual([{ data: 'a', namedError: false }])
  })

  test('every stream means what eventsource-parser takes it for, wherever it is cut', () => {
    const line = fc.oneof(
      fc.constantFrom('', '', 'data', 'data:', 'data: ', 'event: error', 'id: 1', ':', 'date', 'd'),
      fc.string({ unit: fc.constantFrom('d', 'a', 't', ':', ' ', 'é', '🦊') }),
      fc.string({ unit: fc.constantFrom('x', ':', ' ', '€') }).map((text) => `data: ${text}`),
    )
    const end = fc.constantFrom('\n', '\r', '\r\n')
    const stream = fc.array(fc.tuple(line, end)).map((lines) => lines.flat().join(''))
    fc.assert(
      fc.property(stream, fc.array(fc.nat()), (text, cuts) => {
        const expected: ServerSentEvent[] = []
        const onEvent = ({ data, event }: { data: string; event?: string | undefined }) =>
          void expected.push({ data, namedError: event === 'error' })
        createParser({ onEvent }).feed(text)
        expect(frame(cutAt(utf8(text), cuts))).toEqual(expected)
      }),
      { numRuns: 2000 },
    )
  })
})

function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b)
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length))
}

describe('strict UTF-8', () => {
  test.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong form', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a character cut off by the line end', [0xe2, 0x82]],
  ])('%s in data is malformed', (_, bad) => {
    const bytes = concatBytes(utf8('data: a'), Uint8Array.from(bad), utf8('\n\n'))
    expect(reasonOf(() => frame([bytes]))).toBe('malformed')
  })

  test('the events before an invalid byte come out', () => {
    const events: string[] = []
    const framer = new EventFramer((event) => void events.push(event.data))
    const bytes = concatBytes(utf8('data: a\n\ndata: '), Uint8Array.of(0xff), utf8('\n\n'))
    expect(reasonOf(() => framer.push(bytes))).toBe('malformed')
    expect(events).toEqual(['a'])
  })

  test('a byte order mark inside data stays', () => {
    expect(dataOf('data: \uFEFFa\n\n')).toEqual(['\uFEFFa'])
  })
})

describe('the length limit', () => {
  const prefix = 'data: '

  test.each([1 << 16, 1 << 24])('a line of exactly 16 MiB passes in reads of %i bytes', (size) => {
    const value = 'x'.repeat(MAX_EVENT_BYTES - prefix.length)
    const bytes = utf8(`${prefix}${value}\n\n`)
    expect(frame(inReads(bytes, size))[0]?.data.length).toBe(value.length)
  })

  test.each([1 << 16, 1 << 25])('one byte more is too long in reads of %i bytes', (size) => {
    const bytes = utf8(`${prefix}${'x'.repeat(MAX_EVENT_BYTES - prefix.length + 1)}\n\n`)
    expect(reasonOf(() => frame(inReads(bytes, size)))).toBe('too_long')
  })

  test('a line that never ends is too long, whatever its field', () => {
    const read = utf8('x'.repeat(1 << 20))
    expect(reasonOf(() => frame(Array.from({ length: 17 }, () => read)))).toBe('too_long')
  })

  test('many data lines of one event are too long together', () => {
    const read = utf8(`data: ${'x'.repeat(1 << 20)}\n`)
    expect(reasonOf(() => frame(Array.from({ length: 16 }, () => read)))).toBe('too_long')
  })

  test('comments without end are no event, and quietBytes counts them', () => {
    const framer = new EventFramer(() => expect.unreachable())
    const read = utf8(': comment\n'.repeat(1000))
    for (let i = 0; i < 3000; i++) framer.push(read)
    expect(framer.quietBytes).toBe(30_000_000)
  })

  test('an 8 MiB line in reads of 20 bytes takes time in proportion to its length', () => {
    const bytes = utf8(`${prefix}${'x'.repeat(8 << 20)}\n\n`)
    const started = cpuMs()
    expect(frame(inReads(bytes, 20))).toHaveLength(1)
    expect(cpuMs() - started).toBeLessThan(5_000)
  })

  test('CR line ends in a long read take time in proportion to its length', () => {
    const started = cpuMs()
    expect(frame([utf8('data: x\r\r'.repeat(400_000))])).toHaveLength(400_000)
    expect(cpuMs() - started).toBeLessThan(5_000)
  })
})

function inReads(bytes: Uint8Array, size: number): Uint8Array[] {
  const count = Math.ceil(bytes.length / size)
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

test('quietBytes leaves out an unfinished event and counts every line end as one byte', () => {
  const framer = new EventFramer(() => {})
  framer.push(utf8(': a\r\n'))
  expect(framer.quietBytes).toBe(4)
  framer.push(utf8('data: b\r\n: c\r\n'))
  expect(framer.quietBytes).toBe(4)
  framer.push(utf8('\r\n'))
  expect(framer.quietBytes).toBe(17)
})

describe('memory for unfinished events', () => {
  const KIB = 1024

  /** A framer, and how much it has taken. */
  function counting(available = Number.POSITIVE_INFINITY) {
    const taken = { bytes: 0 }
    const events: string[] = []
    const framer = new EventFramer(
      ({ data }) => void events.push(data),
      (bytes) => {
        if (taken.bytes + bytes > available) throw new Error('no memory')
        taken.bytes += bytes
      },
    )
    return { framer, taken, events }
  }

  test('is not asked for by events of up to 64 KiB', () => {
    const { framer, taken, events } = counting(0)
    for (let i = 0; i < 10; i++) {
      framer.push(utf8(`data: ${'x'.repeat(30 * KIB)}`))
      framer.push(utf8('\n\n'))
    }
    expect([events.length, taken.bytes]).toEqual([10, 0])
  })

  test('is taken for a line and for the data of earlier lines, once for the largest event', () => {
    const { framer, taken } = counting()
    framer.push(utf8(`data: ${'x'.repeat(1000 * KIB)}`))
    const line = taken.bytes
    expect(line).toBeGreaterThanOrEqual((1000 - 64) * KIB)
    framer.push(utf8(`\ndata: ${'x'.repeat(1000 * KIB)}\n\n`))
    const both = taken.bytes
    expect(both).toBeGreaterThanOrEqual((2000 - 64) * KIB)
    framer.push(utf8(`data: ${'x'.repeat(1000 * KIB)}`))
    framer.push(utf8(`\ndata: ${'x'.repeat(1000 * KIB)}\n\n`))
    expect(taken.bytes).toBe(both)
  })

  test('that is refused breaks the stream, before more is held than was taken', () => {
    const { framer, taken, events } = counting(500 * KIB)
    const pieces = inReads(utf8(`data: ${'x'.repeat(1000 * KIB)}`), 10 * KIB)
    let pushed = 0
    const push = () => {
      for (const piece of pieces) {
        framer.push(piece)
        pushed += piece.length
      }
    }
    expect(push).toThrow(expect.objectContaining({ name: 'BrokenStream', reason: 'no_memory' }))
    expect(pushed).toBeLessThanOrEqual(taken.bytes + 64 * KIB)
    expect(events).toEqual([])
  })
})
