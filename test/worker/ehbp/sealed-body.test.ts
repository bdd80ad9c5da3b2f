import { describe, expect, test, vi } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { AnswerCipher } from '../../../src/protocol/ehbp-answer.ts'
import { FrameReader } from '../../../src/protocol/ehbp-frames.ts'
import { sealedBody } from '../../../src/worker/ehbp/sealed-body.ts'

const seed = () => new Uint8Array(32)
const cipher = () => AnswerCipher.derive(seed(), seed(), seed())

/** A stream that a test feeds by hand. */
function source() {
  let feed!: ReadableStreamDefaultController<Uint8Array>
  const cancelled = vi.fn<(reason: unknown) => void>()
  const body = new ReadableStream<Uint8Array>(
    { start: (controller) => void (feed = controller), cancel: cancelled },
    { highWaterMark: 0 },
  )
  return { body, cancelled, feed }
}

async function reading(body: ReadableStream<Uint8Array>) {
  const [reader, opener] = [body.getReader(), await cipher()]
  const frames = new FrameReader(70_000)
  return {
    reader,
    /** Plaintexts of the frames of the next chunk; undefined at the end. */
    next: async () => {
      const { done, value } = await reader.read()
      if (done) return undefined
      const plain: string[] = []
      for (const frame of frames.push(value)) plain.push(fromUtf8(await opener.open(frame)))
      return plain
    },
  }
}

describe('a sealed stream', () => {
  test('passes each chunk on at once as a frame of its own while its reader keeps up', async () => {
    const { body, feed } = source()
    const { next } = await reading(sealedBody(body, await cipher()))
    for (const text of ['one', 'two']) {
      const coming = next()
      feed.enqueue(utf8(text))
      expect(await coming).toEqual([text])
    }
    feed.close()
    expect(await next()).toEqual([''])
    expect(await next()).toBeUndefined()
  })

  test('joins what came while there was no reader', async () => {
    const { body, feed } = source()
    const { next } = await reading(sealedBody(body, await cipher()))
    for (let i = 0; i < 100; i++) feed.enqueue(utf8(`${i},`))
    await vi.waitFor(async () => expect(feed.desiredSize).toBe(0))
    const frames = (await next()) ?? []
    expect(frames).toHaveLength(1)
    expect(frames[0]).toBe(Array.from({ length: 100 }, (_, i) => `${i},`).join(''))
  })

  test('takes no more than it has room for from a source that runs ahead', async () => {
    let made = 0
    const body = new ReadableStream<Uint8Array>(
      { pull: (controller) => controller.enqueue(new Uint8Array(16_384).fill(++made)) },
      { highWaterMark: 0 },
    )
    sealedBody(body, await cipher())
    await vi.waitFor(() => expect(made).toBe(4))
    await new Promise(setImmediate)
    expect(made).toBe(4)
  })

  test('fails when its source does, without the frame that would call it whole', async () => {
    const { body, feed } = source()
    const { next } = await reading(sealedBody(body, await cipher()))
    const coming = next()
    feed.enqueue(utf8('half'))
    await coming
    feed.error(new Error('cut'))
    await expect(next()).rejects.toThrow('cut')
  })

  test('notifies its source when the client has disconnected', async () => {
    const { body, cancelled } = source()
    const { reader } = await reading(sealedBody(body, await cipher()))
    await reader.cancel('gone')
    expect(cancelled).toHaveBeenCalledWith('gone')
  })
})
