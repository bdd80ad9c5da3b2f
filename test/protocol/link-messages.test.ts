import { describe, expect, it } from 'vitest'
import {
  MalformedFrame,
  MAX_MESSAGE_BYTES,
  MAX_CHUNK_BYTES,
  MESSAGE_KINDS,
  CHUNK_WINDOW_BYTES,
  TAKEN_STEP_BYTES,
  parseTaken,
  printTaken,
  readFrame,
  writeFrames,
  type LinkMessage,
} from '../../src/protocol/link-messages.ts'

const message = (id: number, head: string, body: string | number): LinkMessage => ({
  kind: MESSAGE_KINDS.call,
  id,
  head,
  body: typeof body === 'number' ? new Uint8Array(body) : new TextEncoder().encode(body),
})

const only = (messages: readonly LinkMessage[]): Uint8Array => {
  const [frame] = writeFrames(messages)
  if (frame === undefined) throw new Error('no frame')
  return frame
}

describe('frames of messages', () => {
  it('say what was written, in order', () => {
    const messages = [
      message(1, '{"path":"/a"}', 'body'),
      message(0xffff_ffff, '', ''),
      { ...message(2, '\u20ac', '\u20ac'), kind: MESSAGE_KINDS.broken },
    ]
    expect(readFrame(only(messages))).toEqual(messages)
  })

  it('are as many as it takes for each to be small', () => {
    const third = Math.floor(MAX_MESSAGE_BYTES / 3)
    const messages = Array.from({ length: 7 }, (_, id) => message(id, '{}', third))
    const frames = writeFrames(messages)
    expect(frames.map((frame) => readFrame(frame).length)).toEqual([2, 2, 2, 1])
    expect(Math.max(...frames.map((frame) => frame.length))).toBeLessThanOrEqual(MAX_MESSAGE_BYTES)
    expect(frames.flatMap((frame) => readFrame(frame))).toEqual(messages)
    expect(writeFrames([])).toEqual([])
  })

  it('are none where they are cut at any byte between messages', () => {
    const messages = [message(1, '{"a":1}', 'one'), message(2, '', 'two')]
    const frame = only(messages)
    const first = only(messages.slice(0, 1)).length
    expect(readFrame(frame.subarray(0, first))).toHaveLength(1)
    const ends = Array.from({ length: frame.length - 1 }, (_, index) => index + 1)
    for (const end of ends.filter((length) => length !== first)) {
      expect(() => readFrame(frame.subarray(0, end))).toThrow(MalformedFrame)
    }
  })

  it.each([
    ['it is empty', () => new Uint8Array(0)],
    ['it ends in a prefix', () => new Uint8Array(12)],
    ['a message of no kind', () => new Uint8Array(13)],
    ['it ends in a message', () => only([message(1, '', 'x')]).subarray(0, 13)],
    [
      'it ends in a message',
      () => Uint8Array.of(1, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255),
    ],
    ['a message that is too large', () => only([message(1, '', MAX_MESSAGE_BYTES)])],
    ['a head that is not UTF-8', () => Uint8Array.of(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 255)],
  ])('are refused: %s', (what, frame) => {
    expect(() => readFrame(frame())).toThrow(`malformed frame: ${what}`)
  })
})

describe('a number of bytes that were taken', () => {
  it.each([
    [0, [0, 0, 0, 0]],
    [1, [0, 0, 0, 1]],
    [0x0102_0304, [1, 2, 3, 4]],
    [0xffff_ffff, [255, 255, 255, 255]],
  ])('%i is four bytes, the largest first', (bytes, body) => {
    expect([...printTaken(bytes)]).toEqual(body)
    expect(parseTaken(Uint8Array.from(body))).toBe(bytes)
  })

  it('is read as part of a frame, where it has other bytes around it', () => {
    const taken = { kind: MESSAGE_KINDS.taken, id: 7, head: '' }
    const frame = only([
      { ...taken, body: printTaken(16_385) },
      { ...taken, body: printTaken(0xffff_0000) },
    ])
    const within = new Uint8Array(frame.length + 3)
    within.set(frame, 3)
    const bodies = readFrame(within.subarray(3)).map(({ body }) => parseTaken(body))
    expect(bodies).toEqual([16_385, 0xffff_0000])
  })

  it.each([0, 1, 3, 5, 8])('is none in %i bytes', (length) => {
    const malformed = new MalformedFrame('a malformed number of bytes')
    expect(() => parseTaken(new Uint8Array(length))).toThrow(malformed)
    expect(malformed.message).toBe('malformed frame: a malformed number of bytes')
  })
})

it('a window has room for the largest chunk beside all that the worker need not tell of', () => {
  expect(TAKEN_STEP_BYTES + MAX_CHUNK_BYTES).toBeLessThanOrEqual(CHUNK_WINDOW_BYTES)
})
