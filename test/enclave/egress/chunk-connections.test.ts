import { afterEach, describe, expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import {
  ChunkConnections,
  MAX_UNREAD_BYTES,
} from '../../../src/enclave/egress/chunk-connections.ts'
import type { SentChunks } from '../../../src/enclave/egress/sent-chunks.ts'
import {
  CHUNK_WINDOW_BYTES,
  MAX_CHUNK_FRAME_BYTES,
  MESSAGE_KINDS,
  printTaken,
  readFrame,
  writeFrames,
  type LinkMessage,
} from '../../../src/protocol/link-messages.ts'
import { openChunkClient, recordIn, recordOf, type ChunkClient } from './chunk-client.ts'

const ONE = '00000000-0000-4000-8000-000000000001'
const OTHER = '00000000-0000-4000-8000-000000000002'

const clients: ChunkClient[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

async function connect(connections: ChunkConnections, id = ONE, prepare?: (s: WebSocket) => void) {
  const client = await openChunkClient((socket) => {
    prepare?.(socket)
    connections.accept(id, socket)
  })
  clients.push(client)
  return client
}

function begin(connections: ChunkConnections, stream: number, connection = ONE): SentChunks {
  const chunks = connections.open({ connection, stream })
  if (chunks === undefined) throw new Error('there is no such connection')
  return chunks
}

const closeOf = (chunks: SentChunks) =>
  new Promise<true>((resolve) => chunks.once('close', () => resolve(true)))

const text = ({ kind, id, head, body }: LinkMessage) => [
  kind,
  id,
  head,
  Buffer.from(body).toString(),
]

describe('a connection for chunks', () => {
  it('puts no more than 64 KiB into one frame, since a client that does not take a chunk keeps all of it', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const sizes: number[] = []
    const all = Promise.withResolvers<void>()
    client.socket.on('message', (data: Buffer) => {
      sizes.push(data.length)
      if (sizes.reduce((sum, size) => sum + size) > 120_000) all.resolve()
    })
    for (const stream of [1, 2, 3]) begin(connections, stream).write(Buffer.alloc(40_000))
    await all.promise
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_CHUNK_FRAME_BYTES)
  })

  it('carries the chunks of all its streams under their numbers, those of one turn in one frame', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const frames: number[] = []
    client.socket.on('message', (data: Buffer) => frames.push(readFrame(data).length))
    const first = begin(connections, 0)
    const second = begin(connections, 0xffff_ffff)
    first.write(Buffer.from('a'))
    second.write(Buffer.from('b'))
    first.write(Buffer.from('c'))
    const seen = [await client.next(), await client.next(), await client.next()]
    expect(seen.map(text)).toEqual([
      [MESSAGE_KINDS.chunk, 0, '', 'a'],
      [MESSAGE_KINDS.chunk, 0xffff_ffff, '', 'b'],
      [MESSAGE_KINDS.chunk, 0, '', 'c'],
    ])
    expect(frames).toEqual([3])
  })

  it('tells only the stream of that number what was taken and that it is cut', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const first = begin(connections, 1)
    const second = begin(connections, 2)
    const drained = new Promise<true>((resolve) => first.on('drain', () => resolve(true)))
    const drains: string[] = []
    second.on('drain', () => drains.push('second'))
    for (const chunks of [first, second]) chunks.write(Buffer.alloc(CHUNK_WINDOW_BYTES))
    client.taken(1, 1)
    expect(await drained).toBe(true)
    const cut = closeOf(first)
    client.cut(1)
    expect(await cut).toBe(true)
    expect([first.destroyed, second.destroyed, drains]).toEqual([true, false, []])
  })

  it('takes no second stream of a number while that is in use, and one once it is not', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const first = begin(connections, 1)
    expect(connections.open({ connection: ONE, stream: 1 })).toBeUndefined()
    const cut = closeOf(first)
    client.cut(1)
    await cut
    begin(connections, 1).write(Buffer.from('new'))
    expect([text(await client.next()), text(await client.next())]).toEqual([
      [MESSAGE_KINDS.end, 1, '', ''],
      [MESSAGE_KINDS.chunk, 1, '', 'new'],
    ])
  })

  it('takes no notice of what was taken of a stream that has ended, and answers that nothing more comes of one that it does not know', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    client.taken(7, 4_000_000_000)
    client.cut(7)
    expect(text(await client.next())).toEqual([MESSAGE_KINDS.end, 7, '', ''])
    const chunks = begin(connections, 8)
    chunks.write(Buffer.from('still open'))
    expect(text(await client.next())).toEqual([MESSAGE_KINDS.chunk, 8, '', 'still open'])
    const cut = closeOf(chunks)
    client.cut(8)
    expect(await cut).toBe(true)
  })

  it('begins no stream that the worker has cut by then, of which the latest 1,024 are remembered', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    for (let stream = 0; stream <= 1_024; stream += 1) client.cut(stream)
    for (let stream = 0; stream <= 1_024; stream += 1) {
      expect(text(await client.next())).toEqual([MESSAGE_KINDS.end, stream, '', ''])
    }
    const open = (stream: number) => connections.open({ connection: ONE, stream })
    expect([open(0), open(1), open(1_024)]).toEqual([expect.anything(), undefined, undefined])
    // Its chunks come in another way; the number is as good as new.
    expect(open(1)).toBeDefined()
  })

  it('is known under no other id, and is forgotten when it ends, with all its streams cut', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    expect(connections.open({ connection: OTHER, stream: 1 })).toBeUndefined()
    const streams = [1, 2, 3].map((stream) => begin(connections, stream))
    const ends = Promise.all(streams.map(closeOf))
    client.socket.close()
    expect(await ends).toEqual([true, true, true])
    expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, true, true])
    expect(connections.open({ connection: ONE, stream: 4 })).toBeUndefined()
  })

  it('gives way to another one of its id, whose streams stay', async () => {
    const connections = new ChunkConnections()
    const former = await connect(connections)
    const old = begin(connections, 1)
    const cut = closeOf(old)
    const client = await connect(connections)
    const young = begin(connections, 1)
    expect(await former.closed).toBe(true)
    expect(await cut).toBe(true)
    young.write(Buffer.from('young'))
    expect(text(await client.next())).toEqual([MESSAGE_KINDS.chunk, 1, '', 'young'])
    expect(connections.open({ connection: ONE, stream: 2 })).toBeDefined()
  })

  it('sends the records of any number of streams that end at once, of the later ones that they are to be asked for', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const record = recordIn(400 * 1024)
    const streams = Array.from({ length: 700 }, (_, stream) => begin(connections, stream))
    for (const chunks of streams) chunks.close(record)
    const sent: Uint8Array[] = []
    while (sent.length < streams.length) sent.push((await client.next()).body)
    expect(streams.map(({ hasRecord }) => hasRecord)).toEqual(sent.map(({ length }) => length > 0))
    expect(sent.at(-1)).toHaveLength(0)
    expect(recordOf(sent.at(0) ?? new Uint8Array(0))).toEqual(record)
    // It has been read, so that there is room again.
    begin(connections, 700).close(record)
    expect(recordOf((await client.next()).body)).toEqual(record)
  })

  it('ends with the egress', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const ended = closeOf(begin(connections, 1))
    connections.close()
    expect([await client.closed, await ended]).toEqual([true, true])
  })
})

const frameOf = (kind: LinkMessage['kind'], body: Uint8Array = new Uint8Array(0)) => {
  const [frame] = writeFrames([{ kind, id: 1, head: '', body }])
  if (frame === undefined) throw new Error('no frame')
  return frame
}

describe('a connection for chunks is closed, with its streams', () => {
  const most = CHUNK_WINDOW_BYTES

  it.each<[string, string | Uint8Array]>([
    ['for more that was taken than was sent', frameOf(MESSAGE_KINDS.taken, printTaken(most + 1))],
    ['for a number of three bytes', frameOf(MESSAGE_KINDS.taken, new Uint8Array(3))],
    ['for a number of five bytes', frameOf(MESSAGE_KINDS.taken, new Uint8Array(5))],
    ['for a frame of text', '{}'],
    ['for a frame that is none', Uint8Array.of(8, 0, 0)],
    ['for an empty frame', new Uint8Array(0)],
    ...(['call', 'cancel', 'answer', 'broken', 'waiting', 'chunk', 'end'] as const).map(
      (kind): [string, Uint8Array] => [`for a message \`${kind}\``, frameOf(MESSAGE_KINDS[kind])],
    ),
  ])('%s', async (_what, frame) => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const chunks = begin(connections, 1)
    const ended = closeOf(chunks)
    chunks.write(Buffer.alloc(2 * most))
    // All of the window was sent.
    for (let seen = 0; seen < most; seen += (await client.next()).body.length);
    client.socket.send(frame)
    expect([await client.closed, await ended, chunks.destroyed]).toEqual([true, true, true])
  })

  it('but not for all that was sent', async () => {
    const connections = new ChunkConnections()
    const client = await connect(connections)
    const chunks = begin(connections, 1)
    chunks.write(Buffer.alloc(most))
    client.taken(1, most)
    chunks.on('drain', () => chunks.write(Buffer.from('more')))
    for (let seen = 0; seen < most; seen += (await client.next()).body.length);
    expect(text(await client.next())).toEqual([MESSAGE_KINDS.chunk, 1, '', 'more'])
  })

  it('where the worker requests streams and reads nothing of what is sent', async () => {
    const connections = new ChunkConnections()
    let unread = MAX_UNREAD_BYTES
    const client = await connect(connections, ONE, (socket) => {
      Object.defineProperty(socket, 'bufferedAmount', { get: () => unread })
    })
    const first = begin(connections, 1)
    first.write(Buffer.from('as much as may be'))
    expect(text(await client.next())).toEqual([MESSAGE_KINDS.chunk, 1, '', 'as much as may be'])
    unread += 1
    const ended = closeOf(first)
    first.write(Buffer.from('more'))
    expect([await client.closed, await ended, first.destroyed]).toEqual([true, true, true])
  })
})
