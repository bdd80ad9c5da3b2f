import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { ClientStream } from '../../../src/worker/completion/client-stream.ts'
import { ChunkStreamSource } from '../../../src/worker/completion/chunk-stream-source.ts'
import { pipedChunkStream } from '../chunks/piped-chunk-stream.ts'

const RECORD = utf8('{"record":1}')
const CUT_OFF = 'the chunks did not all come to the client'

function set(call = new OwnSignal()) {
  const parts = pipedChunkStream()
  return { ...parts, call, source: new ChunkStreamSource(parts.chunkStream, call) }
}

/** A client's end that sees its bytes, of which all are read. */
function reading() {
  const client = new ClientStream(60_000, Date.now, () => {})
  return { client, text: new Response(client.readable).text() }
}

describe('chunks of a stream that are sent separately', () => {
  it('begin with the first one, and all come to a client to which the runtime moves them', async () => {
    const { chunkStream, source } = set()
    const begun = source.begin()
    chunkStream.take(utf8('one;'))
    expect(await begun).toBe(true)
    const client = await source.pumped(() => {})
    const text = new Response(client.readable).text()
    chunkStream.take(utf8('two;'))
    chunkStream.takeEnd(RECORD)
    await source.passTo(client)
    expect(await source.record()).toBe('{"record":1}')
    await client.finish(utf8('last;'))
    expect(await text).toBe('one;two;last;')
  })

  it('have not begun where only their end came, with its record or without', async () => {
    for (const record of ['{"record":1}', '']) {
      const { chunkStream, source } = set()
      chunkStream.takeEnd(utf8(record))
      expect([await source.begin(), await source.record()]).toEqual([false, record])
    }
  })

  it('fail before the first one where they are cut', async () => {
    const { chunkStream, source } = set()
    const begun = source.begin()
    chunkStream.lose()
    await expect(begun).rejects.toThrow(CUT_OFF)
  })

  it.each(['lost', 'given up', 'left'])('fail where they are %s after it', async (how) => {
    const { chunkStream, source, call } = set()
    chunkStream.take(utf8('one;'))
    const client = await source.pumped(() => {})
    const passed = source.passTo(client)
    if (how === 'lost') chunkStream.lose()
    else if (how === 'given up') call.abort(new Error('too late'))
    else await client.readable.cancel()
    await expect(passed).rejects.toThrow(CUT_OFF)
  })

  it('are read here for a client whose bytes are seen', async () => {
    const { chunkStream, source, served } = set()
    chunkStream.take(utf8('one;'))
    const { client, text } = reading()
    const passed = source.passTo(client)
    chunkStream.take(utf8('two;'))
    chunkStream.takeEnd(RECORD)
    await passed
    await client.finish(utf8('last;'))
    expect(await text).toBe('one;two;last;')
    expect(await Promise.all(served)).toHaveLength(1)
  })

  it('that are read here fail where they are cut, and the event that was begun is ended', async () => {
    const { chunkStream, source } = set()
    chunkStream.take(utf8('data: o'))
    const { client, text } = reading()
    const passed = source.passTo(client)
    // Once that was taken, the rest is lost.
    await new Promise((resolve) => setImmediate(resolve))
    chunkStream.lose()
    await expect(passed).rejects.toBeUndefined()
    await client.finish(utf8('data: error\n\n'))
    expect(await text).toBe('data: o\n\ndata: error\n\n')
  })

  it.each(['later', 'already'])('end with their call where that is ended %s', async (when) => {
    const call = new OwnSignal()
    if (when === 'already') call.abort(new Error('the client left'))
    const { source, chunkStream, ended } = set(call)
    if (when === 'later') call.abort(new Error('the client left'))
    expect(ended).toEqual([true])
    expect(await chunkStream.over).toBe('cut')
    await expect(source.begin()).rejects.toThrow(CUT_OFF)
  })

  it('are cut where they come in another way', () => {
    const { source, ended } = set()
    source.leave()
    expect(ended).toEqual([true])
  })

  it('have not begun where they were cut, although the daemon answers with a record', async () => {
    const { chunkStream, source, call } = set()
    const begun = source.begin()
    call.abort(new Error('too late'))
    chunkStream.takeEnd(RECORD)
    await expect(begun).rejects.toThrow(CUT_OFF)
    expect(await source.record()).toBe('{"record":1}')
  })
})
