import { describe, expect, it } from 'vitest'
import { openChunkStreams } from '../../../src/worker/chunks/chunk-streams.ts'
import { ChunkSwitch, type ChunkStub } from '../../../src/worker/chunks/chunk-switch.ts'
import type { ObjectNamespace } from '../../../src/worker/storage/object-call.ts'

type ObjectId = ReturnType<ObjectNamespace<ChunkStub>['idFromName']>

function set() {
  const chunkSwitch = new ChunkSwitch(Date.now, () => 'id-1')
  const asked: string[] = []
  const stub: ChunkStub = {
    open: async () => void asked.push('open'),
    connect: () => {
      throw new Error('a request opens no pipe itself')
    },
  }
  const PIPES = {
    fetch: async (url: string) => {
      asked.push(url)
      return { body: new ReadableStream() }
    },
  }
  // Nothing but the namespace looks at an id.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const id = {} as ObjectId
  const CHUNKS: ObjectNamespace<ChunkStub> = {
    idFromName: (name) => {
      asked.push(name)
      return id
    },
    get: (given) => {
      expect(given).toBe(id)
      asked.push('get')
      return stub
    },
  }
  const kept: Promise<unknown>[] = []
  const host = { keepAlive: (work: Promise<unknown>) => void kept.push(work), ended: () => {} }
  return { chunkSwitch, asked, CHUNKS, PIPES, host, kept }
}

describe('the chunk streams of an isolate', () => {
  it('come of its one object, whose stub is made anew each time', async () => {
    const { chunkSwitch, asked, CHUNKS, PIPES, host, kept } = set()
    const streams = openChunkStreams({ CHUNKS, PIPES }, { ...host, chunkSwitch })
    streams.prepare()
    await Promise.all(kept)
    expect([asked, kept.length]).toEqual([['chunks', 'get', 'open'], 1])
    expect(streams.open()).toBeUndefined()
    chunkSwitch.offer(chunkSwitch.begin())
    const chunkStream = streams.open()
    expect(chunkStream?.address).toEqual({ connection: 'id-1', stream: 1 })
    await chunkStream?.openForClient()
    expect(asked).toEqual(['chunks', 'get', 'open', 'http://pipes/id-1.1'])
  })

  it.each(['namespace', 'way to pipes', 'switch'])('are none where there is no %s', (lacks) => {
    const { chunkSwitch, asked, CHUNKS, PIPES, host, kept } = set()
    chunkSwitch.offer(chunkSwitch.begin())
    const env = {
      ...(lacks !== 'namespace' && { CHUNKS }),
      ...(lacks !== 'way to pipes' && { PIPES }),
    }
    const streams = openChunkStreams(env, lacks === 'switch' ? host : { ...host, chunkSwitch })
    streams.prepare()
    expect([streams.open(), asked, kept]).toEqual([undefined, [], []])
  })
})
