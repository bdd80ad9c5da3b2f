import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { ClientStream } from '../../../src/worker/completion/client-stream.ts'
import { AnswerRecorder } from '../../../src/worker/idempotency/answer-recorder.ts'

const KEEP_ALIVE_MS = 1_000
const COMMENT = ': keep-alive\n\n'
const HOUR_MS = 3_600_000

let offset = 0

beforeEach(() => {
  vi.useFakeTimers()
  offset = 0
})

afterEach(() => void vi.useRealTimers())

/** A started stream whose client reads everything. */
function opened(recorder?: AnswerRecorder) {
  const now = () => Date.now() + offset
  const client = new ClientStream(KEEP_ALIVE_MS, now, () => {}, recorder)
  client.start()
  const received = { text: '' }
  const ended = client.readable.pipeTo(
    new WritableStream({ write: (bytes) => void (received.text += fromUtf8(bytes)) }),
  )
  return { client, received, ended }
}

/** A body that is fed by hand. */
function body() {
  let controller!: ReadableStreamDefaultController<Uint8Array>
  const stream = new ReadableStream<Uint8Array>({ start: (given) => void (controller = given) })
  const add = async (text: string) => {
    controller.enqueue(utf8(text))
    await vi.advanceTimersByTimeAsync(0)
  }
  return { stream, controller, add }
}

const outcomeOf = (taken: Promise<void>): Promise<unknown> =>
  taken.then(
    () => 'taken',
    (error: unknown) => error,
  )

describe('keep-alive comments', () => {
  test('are sent when nothing else was for as long', async () => {
    const { client, received } = opened()
    await vi.advanceTimersByTimeAsync(900)
    await client.send(utf8('data: 1\n\n'))
    await vi.advanceTimersByTimeAsync(999)
    expect(received.text).toBe('data: 1\n\n')
    await vi.advanceTimersByTimeAsync(1)
    expect(received.text).toBe(`data: 1\n\n${COMMENT}`)
  })

  test('are at most one interval late when the clock is set back', async () => {
    const { received } = opened()
    await vi.advanceTimersByTimeAsync(500)
    offset = -HOUR_MS
    await vi.advanceTimersByTimeAsync(1_500)
    expect(received.text).toBe(COMMENT)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(received.text).toBe(COMMENT + COMMENT)
  })

  test('are not sent into an event of which only a part has come', async () => {
    const { client, received } = opened()
    const source = body()
    const taken = client.take(utf8('data: 1\n\nda'), source.stream)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(received.text).toBe('data: 1\n\nda')
    await source.add('ta: 2\n')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(received.text).toBe('data: 1\n\ndata: 2\n')
    await source.add('\n')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(received.text).toBe(`data: 1\n\ndata: 2\n\n${COMMENT}`)
    source.controller.close()
    await taken
  })
})

describe('a body that fails', () => {
  test.each(['data: {"cut', 'data: 2\n', 'd'])(
    'inside an event (%j) has that event ended, in the digest and the record too',
    async (cut) => {
      const recorder = new AnswerRecorder(() => {})
      const { client, received, ended } = opened(recorder)
      const source = body()
      const outcome = outcomeOf(client.take(utf8('data: 1\n\n'), source.stream))
      await source.add(cut)
      const failure = new Error('the source failed')
      source.controller.error(failure)
      expect(await outcome).toBe(failure)
      const sent = `data: 1\n\n${cut}\n\n`
      expect(await client.seal()).toBe(await sha256Hex(utf8(sent)))
      const last = utf8('data: {"error":{}}\n\n')
      await client.finish(last)
      await ended
      expect(received.text).toBe(`${sent}data: {"error":{}}\n\n`)
      expect(fromUtf8(client.recorded(last) ?? new Uint8Array())).toBe(received.text)
    },
  )

  test('between events has nothing added', async () => {
    const { client, received } = opened()
    const source = body()
    const outcome = outcomeOf(client.take(utf8('data: 1\n\n'), source.stream))
    await source.add('data: 2\n')
    await source.add('\n')
    source.controller.error(new Error('the source failed'))
    expect(await outcome).toBeInstanceOf(Error)
    expect(received.text).toBe('data: 1\n\ndata: 2\n\n')
  })
})
