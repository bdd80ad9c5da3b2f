import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { ChunkStreamClient } from '../../../src/worker/completion/chunk-stream-client.ts'
import { settled } from '../calls/fake-socket.ts'
import { pipedChunkStream } from '../chunks/piped-chunk-stream.ts'

const RECORD = utf8('{}')

async function set() {
  const parts = pipedChunkStream()
  let disconnects = 0
  const client = await ChunkStreamClient.open(parts.chunkStream, () => (disconnects += 1))
  return {
    ...parts,
    client,
    get disconnects() {
      return disconnects
    },
  }
}

describe('a client whose chunks the runtime moves', () => {
  it('has them, what is sent after them and the last events, in order, and then the end', async () => {
    const { client, chunkStream, served } = await set()
    const text = new Response(client.readable).text()
    chunkStream.take(utf8('one;'))
    chunkStream.takeEnd(RECORD)
    await client.send(utf8('closing;'))
    await client.finish(utf8('last;'))
    expect(await text).toBe('one;closing;last;')
    expect(await Promise.all(served)).toHaveLength(1)
  })

  it('is told where the router ended it after chunks that were cut inside an event', async () => {
    const { client, chunkStream } = await set()
    const text = new Response(client.readable).text()
    chunkStream.take(utf8('data: one\n\ndata: tw'))
    chunkStream.lose()
    expect(await chunkStream.over).toBe('cut')
    await client.finish(utf8('data: error\n\n'))
    expect(await text).toBe('data: one\n\ndata: tw\n\ndata: error\n\n')
  })

  it('that leaves before it has all is told of once, and is sent nothing more', async () => {
    const parts = await set()
    const { client, chunkStream, ended, served } = parts
    chunkStream.take(utf8('one;'))
    await client.readable.cancel()
    await settled()
    expect([parts.disconnects, ended]).toEqual([1, [true]])
    await expect(client.send(utf8('closing;'))).rejects.toThrow('the client has disconnected')
    await client.finish(utf8('last;'))
    await Promise.all(served)
    expect(parts.disconnects).toBe(1)
  })

  it('that leaves once it has all chunks misses the last events alone', async () => {
    const parts = await set()
    const { client, chunkStream, served } = parts
    const reader = client.readable.getReader()
    chunkStream.take(utf8('one;'))
    chunkStream.takeEnd(RECORD)
    await reader.read()
    expect(await chunkStream.over).toBe('taken')
    await reader.cancel()
    await client.finish(utf8('last;'))
    await Promise.all(served)
    expect(parts.disconnects).toBe(0)
  })

  it('that reads neither chunks nor last events is given up', async () => {
    const parts = await set()
    const { client, chunkStream } = parts
    chunkStream.take(utf8('one;'))
    const finished = client.finish(utf8('last;'))
    client.abandon()
    await finished
    expect([parts.disconnects, await chunkStream.over]).toEqual([1, 'disconnected'])
  })

  it('has bytes that are neither seen nor given here', async () => {
    const { client } = await set()
    expect(client.seesBytes).toBe(false)
    expect(() => client.seal()).toThrow(
      'internal error: bytes that were not seen have no digest here',
    )
    expect(() => client.take()).toThrow('internal error: the runtime moves these chunks')
  })
})
