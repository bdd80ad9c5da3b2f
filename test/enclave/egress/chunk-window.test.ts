import { expect, test } from 'vitest'
import { ChunkWindow } from '../../../src/enclave/egress/chunk-window.ts'
import { CHUNK_WINDOW_BYTES, MAX_CHUNK_BYTES } from '../../../src/protocol/link-messages.ts'

const zeros = (length: number) => new Uint8Array(length)

/** The lengths of the chunks that leave now. */
function lengths(window: ChunkWindow): number[] {
  const left: number[] = []
  for (let chunk = window.next(); chunk !== undefined; chunk = window.next())
    left.push(chunk.length)
  return left
}

test('bytes leave in chunks of at most the size of a message, as many as fit into the window', () => {
  const window = new ChunkWindow()
  window.add(zeros(CHUNK_WINDOW_BYTES + 1))
  expect(lengths(window)).toEqual(Array(4).fill(MAX_CHUNK_BYTES))
  expect(lengths(window)).toEqual([])
  expect(window).toMatchObject({ isFull: true, hasWaiting: true })
  window.taken(1)
  expect(lengths(window)).toEqual([1])
  expect(window).toMatchObject({ isFull: true, hasWaiting: false })
})

test('a client cannot have taken more than was sent to it', () => {
  const window = new ChunkWindow()
  window.add(zeros(10))
  expect(() => window.taken(1)).toThrow(new RangeError('more was taken than was sent'))
  expect(lengths(window)).toEqual([10])
  expect(() => window.taken(11)).toThrow(new RangeError('more was taken than was sent'))
  window.taken(10)
  expect(() => window.taken(1)).toThrow(new RangeError('more was taken than was sent'))
})

test('chunks that are dropped leave room only as far as they had not left', () => {
  const window = new ChunkWindow()
  window.add(zeros(2 * CHUNK_WINDOW_BYTES))
  lengths(window)
  window.clear()
  expect(window).toMatchObject({ isFull: true, hasWaiting: false })
  window.taken(CHUNK_WINDOW_BYTES)
  expect(window).toMatchObject({ isFull: false })
  expect(lengths(window)).toEqual([])
})
