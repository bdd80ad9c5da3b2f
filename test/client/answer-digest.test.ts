import { describe, expect, test } from 'vitest'
import { digestAnswer } from '../../src/client/answer-digest.ts'
import { concatBytes, utf8 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'

const FIRST = 'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n: keep-alive\n\n'
const NAMING = 'data: {"choices":[],"service":{"receipt_id":"the id"}}\n\n'
const STREAM = new Headers({ 'content-type': 'text/event-stream; charset=utf-8' })

describe('the digest of a stream', () => {
  test.each([
    ['in one piece', (bytes: Uint8Array) => [bytes]],
    ['byte by byte', (bytes: Uint8Array) => [...bytes].map((byte) => Uint8Array.of(byte))],
  ])('covers what precedes the event with the receipt, and nothing after it: %s', async (...of) => {
    const [, split] = of
    const digest = digestAnswer(STREAM)
    for (const piece of split(utf8(FIRST))) digest.update(piece)
    expect(digest.complete).toBe(false)
    for (const piece of split(utf8(NAMING))) digest.update(piece)
    expect(digest.complete).toBe(true)
    const expected = { sha256: await sha256Hex(FIRST), receiptId: 'the id' }
    expect(digest.finish()).toEqual(expected)
    const another = 'data: {"choices":[],"service":{"receipt_id":"another"}}\n\n'
    for (const piece of split(utf8(`data: [DONE]\n\n${another}the rest`))) digest.update(piece)
    expect(digest.finish()).toEqual(expected)
    expect(digest.complete).toBe(true)
  })

  test('covers all of one that names no receipt, an unfinished event included', async () => {
    const digest = digestAnswer(STREAM)
    digest.update(concatBytes(utf8(FIRST), utf8('data: {"cho')))
    expect(digest.finish()).toEqual({ sha256: await sha256Hex(`${FIRST}data: {"cho`) })
  })
})
