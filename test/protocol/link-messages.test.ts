import { describe, expect, it } from 'vitest'
import {
  MalformedFrame,
  MAX_MESSAGE_BYTES,
  MESSAGE_KINDS,
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
