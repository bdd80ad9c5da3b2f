import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { MESSAGE_KINDS } from '../../../src/protocol/link-messages.ts'
import { ChunkSwitch, type ChunkStub } from '../../../src/worker/chunks/chunk-switch.ts'
import { FakeSocket, settled } from '../calls/fake-socket.ts'
import { HandPipe } from './hand-pipe.ts'

/** A switch whose object does as workerd's does. */
function set() {
  const clock = { now: 10_000 }
  let ids = 0
  const chunks = new ChunkSwitch(
    () => clock.now,
    () => `id-${(ids += 1)}`,
  )
  const object = { opens: true }
  const sockets: FakeSocket[] = []
  const asked: { opens: number; pipes: string[] } = { opens: 0, pipes: [] }
  const stub = (): ChunkStub => {
    return {
      open: async () => {
        asked.opens += 1
        const connection = chunks.begin()
        await Promise.resolve()
        if (!object.opens) throw new Error('no connection is taken there')
        const socket = new FakeSocket()
        sockets.push(socket)
        void connection.run(socket)
        chunks.offer(connection)
      },
      connect: () => {
        throw new Error('a request opens no pipe itself')
      },
    }
  }
  const pipes = {
    fetch: async (url: string) => {
      asked.pipes.push(url)
      return { body: new ReadableStream() }
    },
  }
  const kept: Promise<unknown>[] = []
  const ended: string[] = []
  /** Prepares for a request. */
  const prepare = async (request = 'r') => {
    chunks.prepare(stub, {
      keepAlive: (work) => void kept.push(work),
      ended: (streams) => void ended.push(`${request}: ${streams}`),
    })
    await Promise.all(kept)
  }
  return { chunks, clock, object, sockets, asked, pipes, kept, ended, prepare }
}

describe('the switch between requests and the object of their chunks', () => {
  it('has the object open a connection once, and opens streams from then on', async () => {
    const { chunks, pipes, asked, prepare, clock } = set()
    expect(chunks.openStream(pipes)).toBeUndefined()
    await prepare()
    clock.now += 5_000
    await prepare()
    expect(asked.opens).toBe(1)
    expect(chunks.openStream(pipes)?.address).toEqual({ connection: 'id-1', stream: 1 })
    expect(chunks.openStream(pipes)?.address).toEqual({ connection: 'id-1', stream: 2 })
  })

  it('gives no stream where none opens, keeps that from the request, and tries again after a second', async () => {
    const { chunks, pipes, asked, prepare, clock, object, kept } = set()
    object.opens = false
    await prepare()
    expect(await Promise.all(kept)).toHaveLength(1)
    expect(chunks.openStream(pipes)).toBeUndefined()
    clock.now += 999
    await prepare()
    expect(asked.opens).toBe(1)
    object.opens = true
    clock.now += 1
    await prepare()
    expect([asked.opens, chunks.openStream(pipes)?.address.connection]).toEqual([2, 'id-2'])
  })

  it('ends the connection of an object that is made anew, so that the next one opens its own', async () => {
    const { chunks, pipes, asked, prepare, clock, ended } = set()
    await prepare()
    const chunkStream = chunks.openStream(pipes)
    chunks.reset()
    expect([await chunkStream?.over, ended]).toEqual(['cut', ['r: 1']])
    clock.now += 1_000
    await prepare()
    expect([asked.opens, chunks.openStream(pipes)?.address.connection]).toEqual([2, 'id-2'])
  })

  it('tries again at once where the clock was set back', async () => {
    const { asked, prepare, clock, object } = set()
    object.opens = false
    await prepare()
    clock.now -= 5_000
    await prepare()
    expect(asked.opens).toBe(2)
  })

  it('gives no stream of a connection that has ended, and tells its last request of it', async () => {
    const { chunks, pipes, sockets, prepare, clock, ended } = set()
    await prepare('first')
    const chunkStream = chunks.openStream(pipes)
    sockets[0]?.tell('close')
    expect([await chunkStream?.over, chunks.openStream(pipes), ended]).toEqual([
      'cut',
      undefined,
      ['first: 1'],
    ])
    clock.now += 1_000
    await prepare('second')
    sockets[1]?.tell('close')
    expect(ended).toEqual(['first: 1', 'second: 0'])
  })

  it('cuts what an instance of the object had that was there before', async () => {
    const { chunks, pipes, prepare, ended } = set()
    await prepare()
    const chunkStream = chunks.openStream(pipes)
    chunks.offer(chunks.begin())
    expect([await chunkStream?.over, ended]).toEqual(['cut', ['r: 1']])
    expect(chunks.openStream(pipes)?.address.connection).toBe('id-2')
  })

  it('leads each pipe to its stream by the name that it was opened with', async () => {
    const { chunks, pipes, asked, sockets, prepare } = set()
    await prepare()
    const [one, two] = [chunks.openStream(pipes), chunks.openStream(pipes)]
    await two?.openForClient()
    await one?.openForClient()
    expect(asked.pipes).toEqual(['http://pipes/id-1.2', 'http://pipes/id-1.1'])
    const pipe = new HandPipe()
    const served = chunks.serve('id-1.1', pipe, new Promise(() => {}))
    sockets[0]?.reply(
      { kind: MESSAGE_KINDS.chunk, id: 1, head: '', body: utf8('a') },
      { kind: MESSAGE_KINDS.chunk, id: 2, head: '', body: utf8('b') },
    )
    one?.close()
    await served
    expect([pipe.text, pipe.ended]).toEqual(['a', 'close'])
  })

  it('cuts a stream whose pipe cannot be opened, and gets no other end for it', async () => {
    const { chunks, pipes, prepare } = set()
    await prepare()
    const chunkStream = chunks.openStream({ ...pipes, fetch: async () => ({ body: null }) })
    await expect(chunkStream?.openForClient()).rejects.toThrow('internal error: no end of a pipe')
    expect(await chunkStream?.over).toBe('cut')
    const never = new Promise<void>(() => {})
    await expect(chunks.serve('id-1.1', new HandPipe(), never)).rejects.toThrow(
      'internal error: a pipe that nobody has opened',
    )
  })

  it('refuses a pipe of no stream, and a second one of the same', async () => {
    const { chunks, pipes, prepare } = set()
    await prepare()
    const never = new Promise<void>(() => {})
    const refused = 'internal error: a pipe that nobody has opened'
    chunks.openStream(pipes)
    await expect(chunks.serve('id-1.1', new HandPipe(), never)).rejects.toThrow(refused)
    await chunks.openStream(pipes)?.openForClient()
    void chunks.serve('id-1.2', new HandPipe(), never)
    await expect(chunks.serve('id-1.2', new HandPipe(), never)).rejects.toThrow(refused)
  })

  it.each([
    ['closes', () => Promise.resolve()],
    ['breaks', () => Promise.reject(new Error('network connection lost'))],
  ])('notes that a client has disconnected where its pipe %s', async (_how, left) => {
    const { chunks, pipes, sockets, prepare } = set()
    await prepare()
    const chunkStream = chunks.openStream(pipes)
    await chunkStream?.openForClient()
    const pipe = new HandPipe()
    await chunks.serve('id-1.1', pipe, left())
    expect([await chunkStream?.over, pipe.ended]).toEqual(['disconnected', 'abort'])
    await settled()
    expect(sockets[0]?.sent).toMatchObject([{ kind: MESSAGE_KINDS.cut, id: 1 }])
  })
})
