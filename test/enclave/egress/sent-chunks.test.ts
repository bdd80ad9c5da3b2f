import { describe, expect, it, vi } from 'vitest'
import { SentChunks } from '../../../src/enclave/egress/sent-chunks.ts'
import {
  CHUNK_WINDOW_BYTES,
  MAX_CHUNK_BYTES,
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  type LinkMessage,
} from '../../../src/protocol/link-messages.ts'
import { RECORD, recordIn, recordOf } from './chunk-client.ts'

/** The chunks of a stream to a worker that takes what it is told to take. */
function open() {
  const sent: Pick<LinkMessage, 'kind' | 'body'>[] = []
  const chunks = new SentChunks((message) => sent.push(message))
  const said: string[] = []
  chunks.on('drain', () => said.push('drain'))
  chunks.once('close', () => said.push('close'))
  const ofKind = (wanted: LinkMessage['kind']) =>
    sent.filter(({ kind }) => kind === wanted).map(({ body }) => body)
  let taken = 0
  return {
    chunks,
    said,
    sent,
    pieces: () => ofKind(MESSAGE_KINDS.chunk),
    ends: () => ofKind(MESSAGE_KINDS.end),
    /** What was sent and is not taken. */
    underWay: () => Buffer.concat(ofKind(MESSAGE_KINDS.chunk)).length - taken,
    take: (bytes: number) => {
      taken += bytes
      chunks.taken(bytes)
    },
  }
}

/** Bytes of which no two pieces are alike. */
function numbered(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32BE(at, at)
  return bytes
}

describe('the window of a stream', () => {
  it.each([1, 5, 4_093, MAX_CHUNK_BYTES - 1])(
    'is never exceeded, however little the worker takes at a time after a write of %i bytes',
    (first) => {
      const opened = open()
      const event = numbered(300_000)
      opened.chunks.write(event.subarray(0, first))
      opened.chunks.write(event.subarray(first))
      const underWay: number[] = []
      while (opened.underWay() > 0) {
        underWay.push(opened.underWay())
        opened.take(Math.min(3_001, opened.underWay()))
      }
      expect(Math.max(...underWay)).toBeLessThanOrEqual(CHUNK_WINDOW_BYTES)
      expect(Buffer.concat(opened.pieces()).equals(event)).toBe(true)
    },
  )

  it('goes on where the worker tells of what it took in the largest steps', () => {
    const opened = open()
    const event = numbered(1024 * 1024)
    opened.chunks.write(event.subarray(0, 1))
    opened.chunks.write(event.subarray(1))
    // Less than a step is never told.
    while (opened.underWay() >= MAX_CHUNK_BYTES) opened.take(MAX_CHUNK_BYTES)
    expect(Buffer.concat(opened.pieces()).equals(event)).toBe(true)
  })

  it('takes an event of 1 MiB in the largest pieces, in order', () => {
    const opened = open()
    const event = numbered(1024 * 1024)
    expect(opened.chunks.write(event)).toBe(false)
    expect(opened.underWay()).toBe(CHUNK_WINDOW_BYTES)
    while (opened.underWay() > 0) opened.take(MAX_CHUNK_BYTES)
    const lengths = new Set(opened.pieces().map(({ length }) => length))
    expect([...lengths]).toEqual([MAX_CHUNK_BYTES])
    expect(Buffer.concat(opened.pieces()).equals(event)).toBe(true)
  })
})

describe('a writer of chunks', () => {
  it('may go on until the window is full, and again once when it is not any more', () => {
    const { chunks, said, take } = open()
    expect(chunks.write(numbered(CHUNK_WINDOW_BYTES - 1))).toBe(true)
    expect(chunks.write(numbered(1))).toBe(false)
    take(0)
    expect(said).toEqual([])
    take(1)
    take(1)
    expect(said).toEqual(['drain'])
  })

  it('waits until all that waited was sent', () => {
    const { chunks, said, take } = open()
    chunks.write(numbered(2 * CHUNK_WINDOW_BYTES))
    take(CHUNK_WINDOW_BYTES)
    expect(said).toEqual([])
    take(1)
    expect(said).toEqual(['drain'])
  })

  it('hears of no drain once it has ended', () => {
    const { chunks, said, take } = open()
    chunks.write(numbered(CHUNK_WINDOW_BYTES))
    chunks.end()
    take(CHUNK_WINDOW_BYTES)
    expect(said).toEqual([])
    chunks.write(numbered(1))
    chunks.close(RECORD)
    expect(said).toEqual(['close'])
  })

  it('sends nothing for no bytes', () => {
    const { chunks, sent } = open()
    expect(chunks.write(new Uint8Array(0))).toBe(true)
    expect(sent).toEqual([])
  })
})

describe('the record of a stream', () => {
  it('comes once, after all chunks', () => {
    const { chunks, said, sent, pieces, ends, take } = open()
    chunks.write(numbered(CHUNK_WINDOW_BYTES + 1))
    chunks.end()
    chunks.close(RECORD)
    expect([ends(), said, chunks.writableFinished, chunks.hasRecord]).toEqual([
      [],
      [],
      false,
      false,
    ])
    take(1)
    expect(sent.at(-1)?.kind).toBe(MESSAGE_KINDS.end)
    expect(Buffer.concat(pieces())).toHaveLength(CHUNK_WINDOW_BYTES + 1)
    expect(ends().map(recordOf)).toEqual([RECORD])
    expect([said, chunks.writableFinished, chunks.hasRecord]).toEqual([['close'], true, true])
    chunks.cut()
    take(CHUNK_WINDOW_BYTES)
    expect([said, chunks.destroyed, ends()]).toEqual([['close'], false, [expect.anything()]])
  })

  it('comes as far as it fits into a message, and is to be asked for beyond that', () => {
    const fits = open()
    const record = recordIn(MAX_MESSAGE_BODY_BYTES)
    fits.chunks.close(record)
    expect(fits.ends().map(recordOf)).toEqual([record])
    expect(fits.chunks.hasRecord).toBe(true)
    const larger = open()
    larger.chunks.close(recordIn(MAX_MESSAGE_BODY_BYTES + 1))
    expect(larger.ends()).toEqual([new Uint8Array(0)])
    expect([larger.chunks.hasRecord, larger.chunks.writableFinished]).toEqual([false, true])
    expect(larger.said).toEqual(['close'])
  })
})

describe('a stream that was cut', () => {
  it('is answered at once, and sends nothing more, whatever is written or taken after that', () => {
    const { chunks, said, sent, ends, take } = open()
    chunks.write(numbered(2 * CHUNK_WINDOW_BYTES))
    chunks.cut()
    expect(ends()).toEqual([new Uint8Array(0)])
    const before = sent.length
    expect([chunks.destroyed, chunks.writableFinished, said]).toEqual([true, false, ['close']])
    expect(chunks.write(numbered(10))).toBe(true)
    chunks.end()
    chunks.close(RECORD)
    take(CHUNK_WINDOW_BYTES)
    chunks.cut()
    expect([sent.length, said, chunks.hasRecord]).toEqual([before, ['close'], false])
  })

  it('is answered with the record that waits for chunks to be taken', () => {
    const { chunks, said, ends } = open()
    chunks.write(numbered(2 * CHUNK_WINDOW_BYTES))
    chunks.close(RECORD)
    chunks.cut()
    expect(ends().map(recordOf)).toEqual([RECORD])
    expect([said, chunks.writableFinished, chunks.hasRecord]).toEqual([['close'], false, true])
  })

  it('is answered with the record by which it is closed then', () => {
    const { chunks, ends } = open()
    chunks.once('close', () => chunks.close(RECORD))
    chunks.write(numbered(1))
    chunks.cut()
    expect(ends().map(recordOf)).toEqual([RECORD])
    expect([chunks.writableFinished, chunks.hasRecord]).toEqual([false, true])
  })

  it.each(['waits', 'follows'])(
    'is answered without a record that %s and is larger than the window',
    (when) => {
      for (const [more, isSent] of [
        [0, true],
        [1, false],
      ] as const) {
        const { chunks, ends } = open()
        const record = recordIn(CHUNK_WINDOW_BYTES + more)
        chunks.write(numbered(2 * CHUNK_WINDOW_BYTES))
        if (when === 'waits') chunks.close(record)
        else chunks.once('close', () => chunks.close(record))
        chunks.cut()
        expect(ends().map(recordOf)).toEqual([isSent ? record : undefined])
        expect(chunks.hasRecord).toBe(isSent)
      }
    },
  )
})

describe('a stream whose connection has ended', () => {
  it.each(['before', 'after'])('tells nobody its record, which it had %s that', (when) => {
    const { chunks, said, sent } = open()
    chunks.write(numbered(2 * CHUNK_WINDOW_BYTES))
    const before = sent.length
    if (when === 'before') chunks.close(RECORD)
    else chunks.once('close', () => chunks.close(RECORD))
    chunks.drop()
    chunks.drop()
    chunks.cut()
    expect([sent.length, said, chunks.destroyed]).toEqual([before, ['close'], true])
    expect([chunks.writableFinished, chunks.hasRecord]).toEqual([false, false])
  })
})

it('a worker that takes more than was sent is refused, and nothing is changed', () => {
  const { chunks, said, sent } = open()
  chunks.write(numbered(2 * CHUNK_WINDOW_BYTES))
  const before = sent.length
  const drained = vi.fn<() => void>()
  chunks.on('drain', drained)
  expect(() => chunks.taken(CHUNK_WINDOW_BYTES + 1)).toThrow(
    new RangeError('more was taken than was sent'),
  )
  expect([sent.length, said, drained.mock.calls]).toEqual([before, [], []])
})
