import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { CHUNK_WINDOW_BYTES, TAKEN_STEP_BYTES } from '../../../src/protocol/link-messages.ts'
import type { After } from '../../../src/worker/batching/deadline-timer.ts'
import { ChunkStream } from '../../../src/worker/chunks/chunk-stream.ts'
import { settled } from '../calls/fake-socket.ts'
import { HandPipe } from './hand-pipe.ts'

const ADDRESS = { connection: '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1', stream: 3 }
const RECORD = utf8('{"record":1}')

/** What has become of a promise by now. */
function stateOf<T>(promise: Promise<T>): { value: T | 'pending' } {
  const state: { value: T | 'pending' } = { value: 'pending' }
  void promise.then((value) => void (state.value = value))
  return state
}

function set() {
  const told: number[] = []
  const ended: boolean[] = []
  const chunkStream = new ChunkStream({
    address: ADDRESS,
    connect: async () => new ReadableStream(),
    tellTaken: (bytes) => void told.push(bytes),
    ended: (mayCome) => void ended.push(mayCome),
  })
  const pipe = new HandPipe()
  const over = stateOf(chunkStream.over)
  const begun = stateOf(chunkStream.begun)
  /** The object gets its end of the pipe. */
  const serve = () => stateOf(chunkStream.serve(pipe).then(() => 'served' as const))
  return { chunkStream, pipe, told, ended, over, begun, serve }
}

describe('the chunks of a chunk stream', () => {
  it('go to the pipe in order, those too that came before it was there', async () => {
    const { chunkStream, pipe, serve, begun, over } = set()
    expect(chunkStream.address).toBe(ADDRESS)
    chunkStream.take(utf8('one;'))
    await settled()
    expect(begun.value).toBe(true)
    serve()
    chunkStream.take(utf8('two;'))
    pipe.take()
    await settled()
    expect(pipe.written).toEqual(['one;', 'two;'])
    expect([over.value, chunkStream.record, pipe.ended]).toEqual(['pending', undefined, undefined])
  })

  it('keep a frame that they are parts of only while nothing ahead of them waits', async () => {
    const { chunkStream, pipe, serve } = set()
    const part = () => new Uint8Array(1_000).subarray(0, 1)
    chunkStream.take(part())
    serve()
    chunkStream.take(part())
    pipe.take(2)
    await settled()
    chunkStream.take(part())
    chunkStream.take(part())
    expect(pipe.kept).toEqual([1, 1, 1_000, 1])
  })

  it('are over once the client has all of them, whether the end came before the pipe or after it', async () => {
    for (const isEarly of [true, false]) {
      const { chunkStream, pipe, serve, over, ended } = set()
      chunkStream.take(utf8('one;'))
      if (isEarly) chunkStream.takeEnd(RECORD)
      serve()
      if (!isEarly) chunkStream.takeEnd(RECORD)
      await settled()
      expect([over.value, ended]).toEqual(['pending', []])
      pipe.take()
      await settled()
      expect([over.value, ended, chunkStream.record]).toEqual(['taken', [false], '{"record":1}'])
      // The client's stream goes on: its last event follows.
      expect(pipe.ended).toBeUndefined()
    }
  })

  it('that end without one have not begun, and are over at once', async () => {
    const { chunkStream, begun, over, ended } = set()
    chunkStream.takeEnd(new Uint8Array(0))
    await settled()
    expect([begun.value, over.value, chunkStream.record, ended]).toEqual([
      false,
      'taken',
      '',
      [false],
    ])
  })

  it('are told as taken in steps, and no more after their end', async () => {
    const { chunkStream, pipe, serve, told } = set()
    serve()
    const step = TAKEN_STEP_BYTES / 4
    for (let chunk = 0; chunk < 7; chunk += 1) chunkStream.take(new Uint8Array(step))
    pipe.take(3)
    await settled()
    expect(told).toEqual([])
    pipe.take(1)
    await settled()
    expect(told).toEqual([TAKEN_STEP_BYTES])
    for (let chunk = 0; chunk < 2; chunk += 1) chunkStream.take(new Uint8Array(TAKEN_STEP_BYTES))
    chunkStream.takeEnd(RECORD)
    pipe.take(4)
    await settled()
    expect(told).toEqual([TAKEN_STEP_BYTES])
    pipe.take()
    await settled()
    expect(told).toEqual([TAKEN_STEP_BYTES])
  })

  it('are never more here than the window for a daemon that keeps to what is told', async () => {
    const { chunkStream, pipe, serve, told } = set()
    serve()
    let sent = 0
    let most = 0
    const mayCome = () => CHUNK_WINDOW_BYTES + told.reduce((sum, bytes) => sum + bytes, 0) - sent
    for (let taken = 0; taken < 200; taken += 1) {
      while (mayCome() >= 1_000) {
        chunkStream.take(new Uint8Array(1_000))
        sent += 1_000
      }
      most = Math.max(most, sent - taken * 1_000)
      pipe.take(1)
      await settled()
    }
    // All of what a slow client took came to it, and it never stood still for want of a message.
    expect(sent).toBeGreaterThan(200_000)
    expect(most).toBeLessThanOrEqual(CHUNK_WINDOW_BYTES)
  })

  it.each(['before the pipe', 'after it'])(
    'that nobody wants any more (%s) are dropped, and the daemon is to be told once',
    async (when) => {
      const { chunkStream, pipe, serve, over, ended, begun } = set()
      if (when === 'after it') serve()
      chunkStream.cut()
      chunkStream.cut()
      chunkStream.take(utf8('late;'))
      chunkStream.takeEnd(RECORD)
      await settled()
      expect([over.value, begun.value, ended]).toEqual(['cut', false, [true]])
      expect([pipe.text, chunkStream.record]).toEqual(['', undefined])
    },
  )

  it('are cut where the connection is lost before their end, and pass where they had all come', async () => {
    const open = set()
    open.serve()
    open.chunkStream.take(utf8('one;'))
    open.chunkStream.lose()
    await settled()
    expect([open.over.value, open.ended, open.begun.value]).toEqual(['cut', [true], true])
    const whole = set()
    whole.serve()
    whole.chunkStream.take(utf8('one;'))
    whole.chunkStream.takeEnd(RECORD)
    whole.chunkStream.lose()
    await settled()
    expect(whole.over.value).toBe('pending')
    whole.pipe.take()
    await settled()
    expect([whole.over.value, whole.ended]).toEqual(['taken', [false]])
  })

  it('of a client that left before all were taken are over, whoever notices it', async () => {
    for (const notice of ['write', 'close'] as const) {
      const { chunkStream, pipe, serve, over, ended } = set()
      const served = serve()
      chunkStream.take(utf8('one;'))
      if (notice === 'write') pipe.break()
      else chunkStream.leave()
      await settled()
      expect([over.value, ended, served.value, pipe.ended]).toEqual([
        'disconnected',
        [true],
        'served',
        'abort',
      ])
      chunkStream.take(utf8('late;'))
      expect(pipe.text).toBe('one;')
    }
  })
})

describe('the last record of a chunk stream', () => {
  /** Timers that fire when they are told to. */
  const timers = () => {
    const waits: { ms: number; passed: () => void; isStopped: boolean }[] = []
    const callAfter: After = (ms, passed) => {
      const wait = { ms, passed, isStopped: false }
      waits.push(wait)
      return { stop: () => void (wait.isStopped = true) }
    }
    return { waits, callAfter }
  }

  it('is the one that came with the end, also while chunks wait and of a client that leaves then', async () => {
    const { chunkStream } = set()
    chunkStream.take(utf8('one;'))
    chunkStream.takeEnd(RECORD)
    expect(await chunkStream.lastRecord()).toBe('{"record":1}')
    chunkStream.leave()
    chunkStream.takeEnd(utf8('{"record":2}'))
    expect(await chunkStream.lastRecord()).toBe('{"record":1}')
  })

  it('is not waited for while chunks are awaited', async () => {
    const { chunkStream } = set()
    chunkStream.take(utf8('one;'))
    const { waits, callAfter } = timers()
    expect([await chunkStream.lastRecord(callAfter), waits]).toEqual([undefined, []])
  })

  it.each([
    ['cut', '{"record":1}'],
    ['leave', '{"record":1}'],
    ['leave', ''],
  ] as const)('is the answer to a %s (%j)', async (how, answer) => {
    const { chunkStream } = set()
    const { waits, callAfter } = timers()
    chunkStream.take(utf8('one;'))
    chunkStream[how]()
    const record = stateOf(chunkStream.lastRecord(callAfter))
    await settled()
    expect(record.value).toBe('pending')
    chunkStream.takeEnd(utf8(answer))
    await settled()
    // That it came with the end of all chunks is not said.
    expect([record.value, chunkStream.record]).toEqual([answer, undefined])
    expect(waits).toMatchObject([{ ms: 2_000, isStopped: true }])
  })

  it('does not come where the connection is lost, or the answer is late', async () => {
    for (const how of ['lost', 'late'] as const) {
      const { chunkStream } = set()
      const { waits, callAfter } = timers()
      chunkStream.leave()
      const record = stateOf(chunkStream.lastRecord(callAfter))
      if (how === 'lost') chunkStream.lose()
      else waits[0]?.passed()
      await settled()
      expect(record.value).toBeUndefined()
    }
  })
})

describe('what is sent after the chunks', () => {
  it('follows them, and then the pipe is closed', async () => {
    const { chunkStream, pipe, serve } = set()
    chunkStream.take(utf8('one;'))
    chunkStream.takeEnd(RECORD)
    const sent = stateOf(chunkStream.send(utf8('last;')))
    const served = serve()
    await settled()
    expect([pipe.text, sent.value]).toEqual(['one;last;', 'pending'])
    pipe.take()
    chunkStream.close()
    await settled()
    expect([sent.value, pipe.ended, served.value]).toEqual([true, 'close', 'served'])
  })

  it('follows chunks that were cut, for a client that is still there', async () => {
    const { chunkStream, pipe, serve } = set()
    serve()
    chunkStream.take(utf8('one;'))
    chunkStream.lose()
    const sent = stateOf(chunkStream.send(utf8('error;')))
    await settled()
    pipe.take()
    await settled()
    expect([pipe.text, sent.value, pipe.ended]).toEqual(['one;error;', true, undefined])
  })

  it.each(['open', 'taken', 'cut'] as const)(
    'to a client that left when its chunks were %s is not sent, and says so',
    async (state) => {
      const { chunkStream, pipe, serve, over } = set()
      const served = serve()
      pipe.take()
      if (state === 'taken') chunkStream.takeEnd(RECORD)
      if (state === 'cut') chunkStream.cut()
      chunkStream.leave()
      const sent = [
        stateOf(chunkStream.send(utf8('last;'))),
        stateOf(chunkStream.send(new Uint8Array(0))),
      ]
      await settled()
      expect(sent).toEqual([{ value: false }, { value: false }])
      chunkStream.close()
      await settled()
      expect([pipe.text, pipe.ended, served.value]).toEqual(['', 'abort', 'served'])
      expect(over.value).toBe(state === 'open' ? 'disconnected' : state)
    },
  )

  it.each(['is given up', 'breaks the pipe'])(
    'fails where the client %s that has not taken it',
    async (how) => {
      const { chunkStream, pipe, serve } = set()
      const served = serve()
      chunkStream.takeEnd(RECORD)
      const sent = stateOf(chunkStream.send(utf8('last;')))
      const next = stateOf(chunkStream.send(utf8('more;')))
      await settled()
      expect([sent.value, next.value]).toEqual(['pending', 'pending'])
      if (how === 'breaks the pipe') pipe.break()
      else chunkStream.leave()
      await settled()
      expect([sent.value, next.value, served.value]).toEqual([false, false, 'served'])
      expect(pipe.ended).toBe('abort')
    },
  )

  it('is nothing where it is empty', async () => {
    const { chunkStream } = set()
    expect(await chunkStream.send(new Uint8Array(0))).toBe(true)
  })
})

describe('a client that is given up', () => {
  it('before the object has its pipe leaves at once, and the pipe is broken off when it comes', async () => {
    const { chunkStream, pipe, serve, over, ended } = set()
    chunkStream.take(utf8('one;'))
    chunkStream.leave()
    await settled()
    expect([over.value, ended]).toEqual(['disconnected', [true]])
    const served = serve()
    await settled()
    expect([pipe.ended, served.value]).toEqual(['abort', 'served'])
  })
})

describe('chunks that are read here', () => {
  it.each(['before', 'after'])('close the pipe where they end %s it is opened', async (when) => {
    const { chunkStream, pipe, serve } = set()
    if (when === 'before') chunkStream.takeEnd(RECORD)
    void chunkStream.openToRead()
    const served = serve()
    if (when === 'after') chunkStream.takeEnd(RECORD)
    await settled()
    expect([pipe.ended, served.value]).toEqual(['close', 'served'])
  })

  it.each(['before', 'after'])('break it off where they are cut %s it is opened', async (when) => {
    const { chunkStream, pipe, serve } = set()
    if (when === 'before') chunkStream.lose()
    void chunkStream.openToRead()
    const served = serve()
    chunkStream.lose()
    await settled()
    expect([pipe.ended, served.value]).toEqual(['abort', 'served'])
  })

  it('close it only once all are taken', async () => {
    const { chunkStream, pipe, serve } = set()
    void chunkStream.openToRead()
    serve()
    chunkStream.take(utf8('one;'))
    chunkStream.takeEnd(RECORD)
    await settled()
    expect(pipe.ended).toBeUndefined()
    pipe.take()
    await settled()
    expect([pipe.text, pipe.ended]).toEqual(['one;', 'close'])
  })
})
