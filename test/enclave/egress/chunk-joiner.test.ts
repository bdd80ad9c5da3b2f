import { describe, expect, it } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'

const OUTPUT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

/** At this many active streams the window is 50 ms. */
const MANY = 300
const WINDOW_MS = 50

/** A joiner whose clock moves only when told. What its streams are read from can rest if wanted. */
function opened(canRest = false) {
  let now = 0
  let tick: (() => void) | undefined
  let soon: (() => void)[] = []
  const joiner = new ChunkJoiner({
    now: () => now,
    every: (_ms, work) => {
      tick = work
      return () => (tick = undefined)
    },
    soon: (work) => soon.push(work),
  })
  const open = () => {
    const sent: string[] = []
    const source = { isRead: true, pause: () => {}, resume: () => {} }
    source.pause = () => (source.isRead = false)
    source.resume = () => (source.isRead = true)
    const joined = joiner.join(
      (bytes) => sent.push(bytes.toString()),
      undefined,
      canRest ? source : undefined,
    )
    return { sent, source, ...joined }
  }
  return {
    open,
    /** Streams that are past their first output. */
    crowd: (count: number) => {
      const streams = Array.from({ length: count }, open)
      for (const { push } of streams) push(Buffer.from(OUTPUT))
      return streams
    },
    pass: (ms: number) => {
      now += ms
      tick?.()
    },
    /** Everything has been read that can be read. */
    read: () => {
      const works = soon
      soon = []
      for (const work of works) work()
    },
    get isWaiting() {
      return tick !== undefined
    },
  }
}

/** One stream of many, which has sent nothing for a while. */
function oneOfMany(canRest = false) {
  const host = opened(canRest)
  const [stream, ...others] = host.crowd(MANY)
  if (stream === undefined) throw new Error('no stream')
  stream.sent.length = 0
  host.pass(200)
  return { ...host, host, stream, others }
}

/** The same after it has sent two chunks together. */
function restingOne() {
  const one = oneOfMany(true)
  const { stream, pass } = one
  for (const chunk of ['1', '2', '3']) stream.push(Buffer.from(chunk))
  expect(stream.source.isRead).toBe(true)
  pass(WINDOW_MS)
  expect([stream.sent, stream.source.isRead]).toEqual([['1', '23'], false])
  return one
}

describe('chunks of many streams', () => {
  it('leave at once when their stream has sent nothing for a window, and wait for it otherwise', () => {
    const { host, stream, pass } = oneOfMany()
    stream.push(Buffer.from('1'))
    expect(stream.sent).toEqual(['1'])
    pass(20)
    stream.push(Buffer.from('2'))
    pass(20)
    stream.push(Buffer.from('3'))
    expect(stream.sent).toEqual(['1'])
    expect(host.isWaiting).toBe(true)
    pass(WINDOW_MS - 40)
    expect(stream.sent).toEqual(['1', '23'])
    expect(host.isWaiting).toBe(false)
    pass(WINDOW_MS)
    stream.push(Buffer.from('4'))
    expect(stream.sent).toEqual(['1', '23', '4'])
  })

  it('are not joined before the first output of their stream', () => {
    const { open } = oneOfMany()
    const stream = open()
    const role = OUTPUT.replace('"a"', '""')
    for (const chunk of [': waiting\n\n', role, role, OUTPUT, 'joined']) {
      stream.push(Buffer.from(chunk))
    }
    expect(stream.sent).toEqual([': waiting\n\n', role, role, OUTPUT])
  })

  it('are not joined while streams are few, or many of them idle', () => {
    const few = opened()
    const [alone] = few.crowd(16)
    const busy = oneOfMany()
    busy.pass(1_000)
    for (const stream of [alone, busy.stream]) {
      for (const chunk of ['1', '2', '3']) stream?.push(Buffer.from(chunk))
      expect(stream?.sent.slice(-3)).toEqual(['1', '2', '3'])
    }
  })

  it('wait for 44 ms at most with 64 streams, and for no frame that comes every 20 ms with 28', () => {
    const waitingAt = (count: number, ms: number) => {
      const host = opened()
      const streams = host.crowd(count)
      host.pass(200)
      for (const { push } of streams) push(Buffer.from('1'))
      host.pass(20)
      for (const { push } of streams) push(Buffer.from('2'))
      host.pass(ms - 20)
      return streams.filter(({ sent }) => sent.at(-1) !== '2').length
    }
    expect([waitingAt(28, 20), waitingAt(64, 43), waitingAt(64, 49)]).toEqual([0, 64, 0])
    expect([waitingAt(128, 49), waitingAt(512, 49), waitingAt(512, 86)]).toEqual([0, 512, 0])
  })

  it('leave with the end of their stream', () => {
    const { stream, host } = oneOfMany()
    for (const chunk of ['1', '2', '3']) stream.push(Buffer.from(chunk))
    stream.end()
    expect(stream.sent).toEqual(['1', '23'])
    expect(host.isWaiting).toBe(false)
  })

  it('are dropped when their stream is no longer read', () => {
    const { stream, host, pass } = oneOfMany()
    for (const chunk of ['1', '2']) stream.push(Buffer.from(chunk))
    stream.leave()
    expect(host.isWaiting).toBe(false)
    pass(1_000)
    expect(stream.sent).toEqual(['1'])
  })

  it('leave before more of them is held than a buffer has room for', () => {
    const { stream } = oneOfMany()
    const chunk = Buffer.alloc(40 * 1024, 'x')
    for (let count = 0; count < 3; count += 1) stream.push(chunk)
    expect(stream.sent.map(({ length }) => length)).toEqual([chunk.length, 2 * chunk.length])
  })

  it('are not read while they would only wait, once several have left together', () => {
    const { stream, pass, read } = restingOne()
    const { source, sent } = stream
    pass(WINDOW_MS - 1)
    expect(source.isRead).toBe(false)
    pass(1)
    expect(source.isRead).toBe(true)
    for (const chunk of ['4', '5', '6']) stream.push(Buffer.from(chunk))
    expect(sent).toEqual(['1', '23'])
    read()
    expect(sent).toEqual(['1', '23', '456'])
    expect(source.isRead).toBe(false)
  })

  it('are read on, and leave at once, when there was only one or none to read after a rest', () => {
    const { stream, host, pass, read } = restingOne()
    const { source, sent } = stream
    pass(WINDOW_MS)
    read()
    expect(source.isRead).toBe(true)
    expect(host.isWaiting).toBe(false)
    stream.push(Buffer.from('4'))
    expect(sent).toEqual(['1', '23', '4'])
    pass(WINDOW_MS)
    stream.push(Buffer.from('5'))
    expect(sent).toEqual(['1', '23', '4', '5'])
    expect(source.isRead).toBe(true)
  })

  it('that still come after their stream is no longer read leave together with what is read next', () => {
    const { stream, pass, read } = restingOne()
    stream.push(Buffer.from('4'))
    pass(WINDOW_MS)
    stream.push(Buffer.from('5'))
    expect(stream.sent).toEqual(['1', '23'])
    read()
    expect(stream.sent).toEqual(['1', '23', '45'])
  })

  it('are read again when their stream ends or is left, so that its connection can be used', () => {
    for (const how of ['end', 'leave'] as const) {
      const { stream, host } = restingOne()
      stream[how]()
      expect([stream.source.isRead, host.isWaiting]).toEqual([true, false])
    }
  })

  it('are read in time whatever streams that rest longer still had to send', () => {
    for (const sizes of [[64 * 1024], [40 * 1024, 40 * 1024]]) {
      const { stream, others, pass } = oneOfMany(true)
      const [other] = others
      if (other === undefined) throw new Error('no other stream')
      for (const { push } of [stream, other]) {
        for (const chunk of ['1', '2', '3']) push(Buffer.from(chunk))
      }
      pass(WINDOW_MS)
      expect([stream.source.isRead, other.source.isRead]).toEqual([false, false])
      pass(WINDOW_MS - 10)
      for (const size of sizes) stream.push(Buffer.alloc(size, 'x'))
      expect(stream.source.isRead).toBe(true)
      pass(10)
      expect(other.source.isRead).toBe(true)
    }
  })

  it('are all read where they are large', () => {
    const { stream, pass } = oneOfMany(true)
    stream.push(Buffer.from('1'))
    for (let count = 0; count < 2; count += 1) stream.push(Buffer.alloc(10 * 1024, 'x'))
    pass(WINDOW_MS)
    expect(stream.sent).toHaveLength(2)
    expect(stream.source.isRead).toBe(true)
  })

  it('keep their bytes and their order, and hold no stream back for more than a quarter of a second', () => {
    const host = opened()
    const streams = host.crowd(5_000)
    host.pass(200)
    const expected = streams.map(({ sent }) => [...sent])
    for (let round = 0; round < 40; round += 1) {
      for (const [index, { push }] of streams.entries()) {
        push(Buffer.from(`${round};`))
        expected[index]?.push(`${round};`)
      }
      host.pass(25)
    }
    const [first] = streams
    expect(first?.sent.length).toBeGreaterThan(4)
    expect(first?.sent.length).toBeLessThan(8)
    for (const { end } of streams) end()
    expect(streams.map(({ sent }) => sent.join(''))).toEqual(expected.map((sent) => sent.join('')))
  })
})
