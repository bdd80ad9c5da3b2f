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
  const asked = { opens: 0, stubs: 0 }
  const pipes: { name: string; options: object }[] = []
  const stub = (): ChunkStub => {
    asked.stubs += 1
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
      connect: (name, options) => {
        pipes.push({ name, options })
        return { readable: new ReadableStream() }
      },
    }
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
  return { chunks, clock, object, sockets, asked, pipes, stub, kept, ended, prepare }
}

describe('the switch between requests and the object of their chunks', () => {
  it('has the object open a connection once, and gives seats from then on', async () => {
    const { chunks, stub, asked, prepare, clock } = set()
    expect(chunks.seat(stub)).toBeUndefined()
    await prepare()
    clock.now += 5_000
    await prepare()
    expect(asked.opens).toBe(1)
    expect(chunks.seat(stub)?.address).toEqual({ connection: 'id-1', stream: 1 })
    expect(chunks.seat(stub)?.address).toEqual({ connection: 'id-1', stream: 2 })
  })

  it('gives no seat where none opens, keeps that from the request, and tries again after a second', async () => {
    const { chunks, stub, asked, prepare, clock, object, kept } = set()
    object.opens = false
    await prepare()
    expect(await Promise.all(kept)).toHaveLength(1)
    expect(chunks.seat(stub)).toBeUndefined()
    clock.now += 999
    await prepare()
    expect(asked.opens).toBe(1)
    object.opens = true
    clock.now += 1
    await prepare()
    expect([asked.opens, chunks.seat(stub)?.address.connection]).toEqual([2, 'id-2'])
  })

  it('ends the connection of an object that is made anew, so that the next one opens its own', async () => {
    const { chunks, stub, asked, prepare, clock, ended } = set()
    await prepare()
    const seat = chunks.seat(stub)
    chunks.reset()
    expect([await seat?.over, ended]).toEqual(['cut', ['r: 1']])
    clock.now += 1_000
    await prepare()
    expect([asked.opens, chunks.seat(stub)?.address.connection]).toEqual([2, 'id-2'])
  })

  it('tries again at once where the clock was set back', async () => {
    const { asked, prepare, clock, object } = set()
    object.opens = false
    await prepare()
    clock.now -= 5_000
    await prepare()
    expect(asked.opens).toBe(2)
  })

  it('gives no seat of a connection that has ended, and tells its last request of it', async () => {
    const { chunks, stub, sockets, prepare, clock, ended } = set()
    await prepare('first')
    const seat = chunks.seat(stub)
    sockets[0]?.tell('close')
    expect([await seat?.over, chunks.seat(stub), ended]).toEqual(['cut', undefined, ['first: 1']])
    clock.now += 1_000
    await prepare('second')
    sockets[1]?.tell('close')
    expect(ended).toEqual(['first: 1', 'second: 0'])
  })

  it('cuts what an instance of the object had that was there before', async () => {
    const { chunks, stub, prepare, ended } = set()
    await prepare()
    const seat = chunks.seat(stub)
    chunks.offer(chunks.begin())
    expect([await seat?.over, ended]).toEqual(['cut', ['r: 1']])
    expect(chunks.seat(stub)?.address.connection).toBe('id-2')
  })

  it('leads each pipe to its stream by the name that it was opened with', async () => {
    const { chunks, stub, pipes, sockets, prepare } = set()
    await prepare()
    const [one, two] = [chunks.seat(stub), chunks.seat(stub)]
    two?.openForClient()
    one?.openForClient()
    expect(pipes).toEqual([
      { name: 'id-1.2:1', options: { allowHalfOpen: true } },
      { name: 'id-1.1:1', options: { allowHalfOpen: true } },
    ])
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

  it('refuses a pipe of no stream, and a second one of the same', async () => {
    const { chunks, stub, prepare } = set()
    await prepare()
    const never = new Promise<void>(() => {})
    const refused = 'internal error: a pipe that nobody has opened'
    chunks.seat(stub)
    await expect(chunks.serve('id-1.1', new HandPipe(), never)).rejects.toThrow(refused)
    chunks.seat(stub)?.openForClient()
    void chunks.serve('id-1.2', new HandPipe(), never)
    await expect(chunks.serve('id-1.2', new HandPipe(), never)).rejects.toThrow(refused)
  })

  it.each([
    ['closes', () => Promise.resolve()],
    ['breaks', () => Promise.reject(new Error('network connection lost'))],
  ])('notes that a client has left where its pipe %s', async (_how, left) => {
    const { chunks, stub, sockets, prepare } = set()
    await prepare()
    const seat = chunks.seat(stub)
    seat?.openForClient()
    const pipe = new HandPipe()
    await chunks.serve('id-1.1', pipe, left())
    expect([await seat?.over, pipe.ended]).toEqual(['left', 'abort'])
    await settled()
    expect(sockets[0]?.sent).toMatchObject([{ kind: MESSAGE_KINDS.cut, id: 1 }])
  })
})
