import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import {
  MESSAGE_KINDS,
  parseTaken,
  TAKEN_STEP_BYTES,
  writeFrames,
} from '../../../src/protocol/link-messages.ts'
import { ChunkConnection } from '../../../src/worker/chunks/chunk-connection.ts'
import { FakeSocket, settled } from '../calls/fake-socket.ts'
import { HandPipe } from './hand-pipe.ts'

const ID = '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1'
const NOTHING = new Uint8Array(0)

const chunk = (id: number, body: Uint8Array) =>
  ({ kind: MESSAGE_KINDS.chunk, id, head: '', body }) as const
const end = (id: number, body: Uint8Array = utf8('{}')) =>
  ({ kind: MESSAGE_KINDS.end, id, head: '', body }) as const

function set() {
  const ended: number[] = []
  const connection = new ChunkConnection(ID, (streams) => void ended.push(streams))
  const socket = new FakeSocket()
  const run = connection.run(socket)
  /** A chunkStream whose pipe is there. */
  const served = () => {
    const chunkStream = connection.openStream(() => async () => new ReadableStream())
    const pipe = new HandPipe()
    void chunkStream.serve(pipe)
    return { chunkStream, pipe, id: chunkStream.address.stream }
  }
  return { connection, socket, run, ended, served }
}

describe('a connection for chunks', () => {
  it('gives each stream the chunks of its number, and its end', async () => {
    const { socket, served, run, ended } = set()
    expect([socket.accepted, socket.binaryType]).toEqual([true, 'arraybuffer'])
    const [one, two] = [served(), served()]
    expect(one.chunkStream.address).toEqual({ connection: ID, stream: 1 })
    expect(two.chunkStream.address).toEqual({ connection: ID, stream: 2 })
    socket.reply(chunk(2, utf8('b')), chunk(1, utf8('a')), chunk(2, utf8('c')), end(2))
    two.pipe.take()
    expect([one.pipe.text, two.pipe.text]).toEqual(['a', 'bc'])
    expect([await two.chunkStream.over, two.chunkStream.record]).toEqual(['taken', '{}'])
    socket.tell('close')
    await run
    // The other one had ended.
    expect([ended, await one.chunkStream.over, socket.sent]).toEqual([[1], 'cut', []])
  })

  it('says what was taken of a stream', async () => {
    const { socket, served } = set()
    const { pipe, id } = served()
    pipe.take()
    socket.reply(chunk(id, new Uint8Array(TAKEN_STEP_BYTES)))
    await settled()
    const [taken, ...more] = socket.sent
    expect(taken).toMatchObject({ kind: MESSAGE_KINDS.taken, id, head: '' })
    expect(parseTaken(taken?.body ?? NOTHING)).toBe(TAKEN_STEP_BYTES)
    expect(more).toEqual([])
  })

  it('says once of a stream that nothing more is wanted, with what one moment brings in one frame', async () => {
    const { socket, served, connection } = set()
    const [cut, left, whole] = [served(), served(), served()]
    socket.reply(chunk(whole.id, utf8('a')), end(whole.id))
    cut.chunkStream.cut()
    left.chunkStream.leave()
    whole.chunkStream.leave()
    await settled()
    const cuts = [cut, left].map(({ id }) => ({
      kind: MESSAGE_KINDS.cut,
      id,
      head: '',
      body: NOTHING,
    }))
    expect(socket.frames).toEqual([cuts])
    expect(connection.hasEnded).toBe(false)
  })

  it("gives a stream that was cut the daemon's answer, and drops the chunks that were on their way", async () => {
    const { socket, served } = set()
    const { chunkStream, pipe, id } = served()
    chunkStream.leave()
    const answer = chunkStream.lastRecord()
    socket.reply(chunk(id, utf8('late')), end(id))
    expect([await answer, pipe.text]).toEqual(['{}', ''])
    await settled()
    expect(socket.sent).toMatchObject([{ kind: MESSAGE_KINDS.cut, id }])
    // The number is unknown now.
    socket.reply(chunk(id, utf8('later')))
    await settled()
    expect(socket.sent).toMatchObject([
      { kind: MESSAGE_KINDS.cut, id },
      { kind: MESSAGE_KINDS.cut, id },
    ])
  })

  it('has no answer for a stream that was cut, or is cut later, once it has ended, and does not count that one', async () => {
    const { socket, served, ended, run } = set()
    const [before, after] = [served(), served()]
    before.chunkStream.cut()
    const answer = before.chunkStream.lastRecord()
    socket.tell('close')
    await run
    after.chunkStream.cut()
    expect([await answer, await after.chunkStream.lastRecord(), ended]).toEqual([
      undefined,
      undefined,
      [1],
    ])
  })

  it('refuses a chunk of a stream that it does not know, and ignores its end', async () => {
    const { socket, connection } = set()
    socket.reply(end(7), chunk(7, utf8('a')))
    await settled()
    expect(socket.sent).toEqual([{ kind: MESSAGE_KINDS.cut, id: 7, head: '', body: NOTHING }])
    expect(connection.hasEnded).toBe(false)
  })

  it.each([
    ['of text', 'text'],
    ['that is empty', new ArrayBuffer(0)],
    ['that ends in a prefix', new ArrayBuffer(3)],
    ['that only a worker sends', writeFrames([{ ...chunk(1, NOTHING), kind: 8 }])[0]?.buffer],
    ['of a call', writeFrames([{ ...chunk(1, NOTHING), kind: 3 }])[0]?.buffer],
  ])('ends with a frame %s, and with it all its streams', async (_what, frame) => {
    const { socket, connection, served, run, ended } = set()
    const streams = [served(), served()]
    socket.tell('message', frame)
    expect([connection.hasEnded, socket.closed, ended]).toEqual([true, true, [2]])
    expect(await Promise.all(streams.map(({ chunkStream }) => chunkStream.over))).toEqual([
      'cut',
      'cut',
    ])
    await run
    // What comes after it is not even read.
    socket.tell('message', frame)
    expect([ended, socket.sent]).toEqual([[2], []])
  })

  it.each(['close', 'error'] as const)('ends with the %s of its socket', async (event) => {
    const { socket, connection, served, run, ended } = set()
    const { chunkStream } = served()
    socket.tell(event)
    socket.tell('close')
    await run
    expect([connection.hasEnded, ended, await chunkStream.over, socket.closed]).toEqual([
      true,
      [1],
      'cut',
      true,
    ])
  })

  it('ends where it cannot send', async () => {
    const { socket, connection, served, run, ended } = set()
    const { chunkStream } = served()
    const other = served()
    socket.fails = true
    chunkStream.cut()
    await run
    expect([connection.hasEnded, ended, await other.chunkStream.over]).toEqual([true, [1], 'cut'])
  })

  it('ends where it cannot even be accepted', async () => {
    const connection = new ChunkConnection(ID, () => {})
    const socket = new FakeSocket()
    socket.accept = () => {
      throw new Error('gone')
    }
    await connection.run(socket)
    expect(connection.hasEnded).toBe(true)
  })

  it('that has ended still passes on a stream of which all had come', async () => {
    const { socket, served, run } = set()
    const { chunkStream, pipe, id } = served()
    socket.reply(chunk(id, utf8('a')), end(id))
    socket.tell('close')
    await run
    const sent = chunkStream.send(utf8('last'))
    pipe.take()
    chunkStream.close()
    expect([await chunkStream.over, await sent, pipe.text]).toEqual(['taken', true, 'alast'])
    await settled()
    expect([pipe.ended, socket.sent]).toEqual(['close', []])
  })
})
