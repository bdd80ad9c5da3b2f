import { expect, test } from 'vitest'
import { fromUtf8, utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { openByteReader } from '../../../src/worker/stream/byte-reader.ts'

/** A stream of these pieces; of bytes, or of any values. */
function bodyOf(type: 'bytes' | undefined, pieces: readonly string[]): ReadableStream<Bytes> {
  const left = [...pieces]
  const pull = (controller: ReadableByteStreamController | ReadableStreamDefaultController) => {
    const piece = left.shift()
    if (piece !== undefined) return controller.enqueue(utf8(piece))
    controller.close()
    if ('byobRequest' in controller) controller.byobRequest?.respond(0)
  }
  return new ReadableStream<Bytes>(type === 'bytes' ? { type, pull } : { pull })
}

async function readAll(body: ReadableStream<Bytes>) {
  const reader = openByteReader(body)
  const memories = new Set<number>()
  let text = ''
  let used: Bytes | undefined
  for (;;) {
    const { value, done } = await reader.read(used)
    if (done) return { text, memories }
    memories.add(value.buffer.byteLength)
    text += fromUtf8(value)
    used = value
  }
}

test('a stream of bytes is read into memory that is used again', async () => {
  const { text, memories } = await readAll(bodyOf('bytes', ['one ', 'two ', 'three']))
  expect(text).toBe('one two three')
  expect([...memories]).toEqual([1024])
})

test('a piece that is larger than the memory comes in parts, into more memory each time up to 8 KiB', async () => {
  const long = 'x'.repeat(20_000)
  const { text, memories } = await readAll(bodyOf('bytes', [long, 'end']))
  expect(text).toBe(`${long}end`)
  expect([...memories]).toEqual([1024, 2048, 4096, 8192])
})

test('another stream is read piece by piece', async () => {
  expect((await readAll(bodyOf(undefined, ['one ', 'two']))).text).toBe('one two')
})

test('a stream that fails rejects the read with its reason', async () => {
  const failure = new Error('gone')
  const body = new ReadableStream<Bytes>({ type: 'bytes', start: (it) => it.error(failure) })
  await expect(openByteReader(body).read(undefined)).rejects.toBe(failure)
})

test('a stream that is read already is refused', () => {
  const body = bodyOf('bytes', [])
  body.getReader()
  expect(() => openByteReader(body)).toThrow(TypeError)
})
