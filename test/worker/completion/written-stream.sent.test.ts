import { describe, expect, it, vi } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import type { StreamRecord } from '../../../src/protocol/stream-record.ts'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import { ChunkStreamSource } from '../../../src/worker/completion/chunk-stream-source.ts'
import { WrittenStream } from '../../../src/worker/completion/written-stream.ts'
import { HttpLink } from '../../../src/worker/link/http-link.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { AttemptClock } from '../../../src/worker/provider/attempt-clock.ts'
import { AttemptFailure } from '../../../src/worker/provider/failure.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import { carriedCall } from '../../support/carried-call.ts'
import { STREAM_SPEC } from '../../support/stream-spec.ts'
import { OPTIONS } from '../../support/golden-streams.ts'
import { pipedChunkStream } from '../chunks/piped-chunk-stream.ts'

const RECORD: StreamRecord = {
  ending: { kind: 'complete' },
  finish_reason: 'stop',
  tail: { events: 0, blocks: 0, open: null, output: [] },
  counts: { prompt: 7, completion: 5, uncounted_text_bytes: 0 },
  provider_response_id: null,
  provider_sha256: 'a'.repeat(64),
  client_sha256: 'b'.repeat(64),
}
const LOST: StreamRecord = { ...RECORD, ending: { kind: 'lost' }, finish_reason: null }

const CHUNK = utf8('data: one\n\n')
const sent = (record: unknown) => utf8(JSON.stringify(record))

const DAEMON_LOST = {
  kind: 'cut',
  failure: null,
  error: {
    code: 'service_unavailable',
    message: 'The enclave that signs receipts cannot be reached.',
  },
}

/** A stream whose chunks the runtime moves, with a daemon that can be asked for its record, unless it is gone. */
function set(isGone = false) {
  const { chunkStream, ended } = pipedChunkStream()
  const clock = new AttemptClock(new Budget(Date.now), Date.now)
  const budget = new OwnSignal()
  const asked: string[] = []
  const http = new HttpLink(
    { fetch: () => Promise.reject(new Error('not asked')) },
    { now: Date.now, keepAlive: () => {} },
  )
  const link = {
    endStream: async (stream: string) => {
      asked.push(stream)
      if (isGone) throw new LinkUnavailable('the enclave daemon cannot be reached')
      // It ends the chunks first.
      chunkStream.takeEnd(new Uint8Array(0))
      return RECORD
    },
    streamRecord: (json: string) => http.streamRecord(json),
    state: () => new Promise<never>(() => {}),
  }
  const last = chatFormat(false).lastEvents(OPTIONS)
  const source = new ChunkStreamSource(chunkStream, clock.signal)
  const stream = new WrittenStream(STREAM_SPEC, source, { link, clock, budget, last })
  const gone = new AbortController()
  /** To a client that reads, until it cancels. */
  const relay = async () => {
    const client = await stream.pumped(() => gone.abort())
    const relayed = stream.relayTo(client, gone.signal, carriedCall())
    return { client, relayed }
  }
  return { chunkStream, ended, clock, budget, asked, stream, relay }
}

describe('a stream whose chunks are sent', () => {
  it('is settled by the record that came with their end, without being asked for', async () => {
    const { chunkStream, asked, relay, stream, ended } = set()
    chunkStream.take(CHUNK)
    await stream.reachCommit()
    const { client, relayed } = await relay()
    chunkStream.takeEnd(sent(RECORD))
    const text = new Response(client.readable).text()
    const { end, clientDigest, providerDigest } = await relayed
    expect([end, clientDigest]).toEqual([{ kind: 'complete' }, RECORD.client_sha256])
    expect([await providerDigest(), asked, ended]).toEqual([RECORD.provider_sha256, [], [false]])
    await client.finish(utf8('last'))
    expect(await text).toBe('data: one\n\nlast')
  })

  it('is settled by the record that is asked for, where that was too large to come', async () => {
    const { chunkStream, asked, relay } = set()
    chunkStream.take(CHUNK)
    chunkStream.takeEnd(new Uint8Array(0))
    const { client, relayed } = await relay()
    void new Response(client.readable).text()
    expect((await relayed).end).toEqual({ kind: 'complete' })
    expect(asked).toEqual([STREAM_SPEC.stream])
  })

  it.each(['no JSON', '{}', JSON.stringify({ ...RECORD, ending: { kind: 'other' } })])(
    'is cut where its record is malformed (%s), as one whose daemon is lost',
    async (record) => {
      const { chunkStream, asked, relay } = set()
      chunkStream.take(CHUNK)
      chunkStream.takeEnd(utf8(record))
      const { client, relayed } = await relay()
      void new Response(client.readable).text()
      const { end, answer } = await relayed
      expect(end).toMatchObject(DAEMON_LOST)
      expect([answer.finishReason, asked]).toEqual([undefined, []])
    },
  )

  it('is cut where the connection is lost, and what its provider has produced is asked for', async () => {
    const { chunkStream, asked, relay, ended } = set()
    chunkStream.take(CHUNK)
    const { relayed } = await relay()
    chunkStream.lose()
    expect((await relayed).end).toMatchObject(DAEMON_LOST)
    expect([asked, ended]).toEqual([[STREAM_SPEC.stream], [true]])
  })

  it('is complete where the connection is lost after their end', async () => {
    const { chunkStream, relay } = set()
    chunkStream.take(CHUNK)
    const { client, relayed } = await relay()
    chunkStream.takeEnd(sent(RECORD))
    chunkStream.lose()
    void new Response(client.readable).text()
    expect((await relayed).end).toEqual({ kind: 'complete' })
  })

  it('is cut as a failure of its route where that is what its record says', async () => {
    const { chunkStream, relay } = set()
    chunkStream.take(CHUNK)
    chunkStream.takeEnd(sent(LOST))
    const { client, relayed } = await relay()
    void new Response(client.readable).text()
    expect((await relayed).end).toMatchObject({
      kind: 'cut',
      failure: { kind: 'unavailable' },
      error: { code: 'bad_gateway', message: 'The provider broke off its answer.' },
    })
  })

  it('ends with its client, and the daemon answers with what its provider has produced', async () => {
    const { chunkStream, relay, asked, ended } = set()
    chunkStream.take(CHUNK)
    const { client, relayed } = await relay()
    await client.readable.cancel()
    await chunkStream.over
    chunkStream.takeEnd(sent({ ...LOST, ending: { kind: 'stopped' } }))
    const { end, answer, providerDigest } = await relayed
    expect([end, answer.usage]).toEqual([
      { kind: 'client_gone' },
      expect.objectContaining({ promptTokens: 7, completionTokens: 5 }),
    ])
    expect(await providerDigest()).toBe(RECORD.provider_sha256)
    expect([asked, ended]).toEqual([[], [true]])
  })

  it.each(['too large to be sent', 'not sent in time'])(
    'ends with its client, and what its provider has produced is asked for where the record is %s',
    async (why) => {
      vi.useFakeTimers()
      try {
        const { chunkStream, relay, asked } = set()
        chunkStream.take(CHUNK)
        const { client, relayed } = await relay()
        await client.readable.cancel()
        await chunkStream.over
        if (why === 'too large to be sent') chunkStream.takeEnd(new Uint8Array(0))
        else await vi.advanceTimersByTimeAsync(2_000)
        expect((await relayed).end).toEqual({ kind: 'client_gone' })
        expect(asked).toEqual([STREAM_SPEC.stream])
      } finally {
        vi.useRealTimers()
      }
    },
  )

  it('is ended by the daemon where its time is up, after a whole event', async () => {
    const { chunkStream, relay, asked, budget } = set()
    chunkStream.take(CHUNK)
    const { client, relayed } = await relay()
    const text = new Response(client.readable).text()
    budget.abort(new Error('too late'))
    expect((await relayed).end).toEqual({ kind: 'complete' })
    await client.finish(utf8('last'))
    expect([await text, asked]).toEqual(['data: one\n\nlast', [STREAM_SPEC.stream]])
  })

  it('is cut where its time is up and its daemon is gone', async () => {
    const { chunkStream, relay, ended, budget } = set(true)
    chunkStream.take(CHUNK)
    const { relayed } = await relay()
    budget.abort(new LinkUnavailable('the enclave daemon cannot be reached'))
    await chunkStream.over
    chunkStream.lose()
    expect((await relayed).end).toMatchObject(DAEMON_LOST)
    expect(ended).toEqual([true])
  })

  it('is cut where its time is up and its daemon cannot be asked, but is billed by the answer to that', async () => {
    const { chunkStream, relay, asked, budget } = set(true)
    chunkStream.take(CHUNK)
    const { relayed } = await relay()
    budget.abort(new Error('too late'))
    expect(await chunkStream.over).toBe('cut')
    chunkStream.takeEnd(sent({ ...LOST, ending: { kind: 'stopped' } }))
    const { end, answer } = await relayed
    expect(end).toMatchObject({ kind: 'cut' })
    expect(answer.usage).toMatchObject({ promptTokens: 7, completionTokens: 5 })
    expect(asked).toEqual([STREAM_SPEC.stream])
  })
})

describe('a stream whose chunks are sent and that has none', () => {
  it('fails by its record', async () => {
    const { chunkStream, stream, asked } = set()
    const committed = stream.reachCommit()
    chunkStream.takeEnd(sent(LOST))
    const failure = new AttemptFailure({ kind: 'unavailable' })
    await expect(committed).rejects.toThrow(failure)
    expect(asked).toEqual([])
  })

  it('fails for the loss of the daemon where the connection ends', async () => {
    const { chunkStream, stream } = set()
    const committed = stream.reachCommit()
    chunkStream.lose()
    await expect(committed).rejects.toThrow(
      new LinkUnavailable('the enclave daemon cannot say how a stream ended'),
    )
  })

  it('fails with the reason of its end where the attempt is ended', async () => {
    const { stream, clock, ended } = set()
    const committed = stream.reachCommit()
    const reason = new AttemptFailure({ kind: 'timeout' })
    clock.abort(reason)
    await expect(committed).rejects.toBe(reason)
    expect(ended).toEqual([true])
  })
})
