import { describe, expect, it } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { PumpedClient } from '../../../src/worker/completion/pumped-client.ts'

/** A body that is fed by hand. */
function body() {
  let controller!: ReadableStreamDefaultController<Uint8Array>
  let canceled = false
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    cancel: () => void (canceled = true),
  })
  return {
    stream,
    controller,
    get canceled() {
      return canceled
    },
  }
}

/** How taking a body ended: the reason where it failed, which is undefined for a client that left. */
const outcomeOf = (taken: Promise<void>): Promise<unknown> =>
  taken.then(
    () => 'taken',
    (error: unknown) => error,
  )

function opened() {
  let disconnects = 0
  const client = new PumpedClient(() => (disconnects += 1))
  const source = body()
  const reader = client.readable.getReader()
  return {
    client,
    source,
    reader,
    taken: client.take(utf8('head;'), source.stream),
    next: async () => fromUtf8((await reader.read()).value ?? new Uint8Array()),
    rest: async () => {
      let text = ''
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        text += fromUtf8(read.value)
      }
      return text
    },
    get disconnects() {
      return disconnects
    },
  }
}

describe('a client to whom the runtime moves the bytes', () => {
  it('receives the head, the body and the last events, in order', async () => {
    const { client, source, taken, rest } = opened()
    source.controller.enqueue(utf8('one;'))
    source.controller.enqueue(utf8('two;'))
    source.controller.close()
    const text = rest()
    await taken
    await client.finish(utf8('last'))
    await expect(text).resolves.toBe('head;one;two;last')
  })

  it('gets the error event as an event of its own where the body breaks off inside of one', async () => {
    const host = opened()
    const text = host.rest()
    host.source.controller.enqueue(utf8('data: {"half'))
    await new Promise((resolve) => setTimeout(resolve, 0))
    host.source.controller.error(new Error('the link broke'))
    await expect(host.taken).rejects.toThrow('the link broke')
    await host.client.finish(utf8('data: error\n\n'))
    await expect(text).resolves.toBe('head;data: {"half\n\ndata: error\n\n')
    expect(host.disconnects).toBe(0)
  })

  it('is noticed when it leaves, before the first bytes or later, and the body is let go', async () => {
    const early = opened()
    const refused = outcomeOf(early.taken)
    await early.reader.cancel()
    expect(await refused).toBeUndefined()
    expect(early.disconnects).toBe(1)

    const late = opened()
    expect(await late.next()).toBe('head;')
    const left = outcomeOf(late.taken)
    await late.reader.cancel()
    expect(await left).toBeUndefined()
    expect(late.disconnects).toBe(1)
    expect(late.source.canceled).toBe(true)
    await late.client.finish(utf8('last'))
  })

  it('that does not read is closed when it is given up', async () => {
    const atTheHead = opened()
    const refused = outcomeOf(atTheHead.taken)
    atTheHead.client.abandon()
    expect(await refused).toBeUndefined()

    const inTheBody = opened()
    await inTheBody.next()
    inTheBody.source.controller.enqueue(utf8('one;'))
    inTheBody.source.controller.enqueue(utf8('two;'))
    const ended = outcomeOf(inTheBody.taken)
    inTheBody.client.abandon()
    const finished = inTheBody.client.finish(utf8('last'))
    inTheBody.client.abandon()
    await finished
    expect(await ended).toMatchObject({ name: 'AbortError' })
  })
})
