import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import type { StreamRecord } from '../../../src/protocol/stream-record.ts'
import type { IdempotentRequest } from '../../../src/worker/idempotency/idempotent-request.ts'
import { AnswerRecorder } from '../../../src/worker/idempotency/answer-recorder.ts'
import { ownTimers } from '../../support/own-timers.ts'
import { pipedChunkStream } from '../chunks/piped-chunk-stream.ts'
import {
  BILLED,
  NOT_BILLED,
  OPENING,
  RECORD,
  streamed,
  textOf,
  TIMERS,
  type Given,
} from './streamed-request.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: [...TIMERS] }))
afterEach(() => void vi.useRealTimers())

const LOST: StreamRecord = { ...RECORD, ending: { kind: 'lost' }, finish_reason: null }
const STOPPED: StreamRecord = { ...LOST, ending: { kind: 'stopped' } }
const NOTHING = new Uint8Array(0)
const sent = (record: StreamRecord) => utf8(JSON.stringify(record))
const WHOLE_ANSWER = /^data: .*"content":"one".*"finish_reason":"stop".*data: \[DONE\]\n\n$/s

/** A stream whose chunks the runtime moves, unless its daemon does otherwise. */
async function sentSeparately(given: Partial<Given> = {}) {
  const { chunkStream, ended, served } = pipedChunkStream()
  const asked: string[] = []
  const endStream = async () => {
    asked.push('end')
    // The daemon ends the chunks first.
    chunkStream.takeEnd(NOTHING)
    return STOPPED
  }
  const parts = await streamed({ written: true, chunks: 'sent', chunkStream, endStream, ...given })
  return { ...parts, chunkStream, ended, served, asked }
}

/** What a request with a key of its own needs, and the answers that were kept. */
function recording() {
  const kept: string[] = []
  const parts = {
    recorder: () => new AnswerRecorder(() => {}),
    seal: async ({ body }: { body?: Uint8Array }) => {
      kept.push(new TextDecoder().decode(body))
      return null
    },
  }
  // A streamed answer takes no other part of it.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { kept, idempotent: parts as unknown as IdempotentRequest }
}

describe('a stream whose chunks are sent separately', () => {
  test('begins with its first chunk, is delivered, and billed by the record that came with its end', async () => {
    const timers = ownTimers()
    const { answer, chunkStream, ledger, asked, ended, served } = await sentSeparately()
    chunkStream.take(utf8(OPENING))
    const text = (await answer).text()
    chunkStream.takeEnd(sent(RECORD))
    expect(await text).toMatch(WHOLE_ANSWER)
    expect(await ledger()).toEqual(BILLED)
    expect([asked, ended, timers.left()]).toEqual([[], [false], 0])
    expect(await Promise.all(served)).toHaveLength(1)
  })

  test('that fails before its first chunk is refused, and costs nothing', async () => {
    const { answer, chunkStream, ledger, served } = await sentSeparately()
    chunkStream.takeEnd(sent(LOST))
    expect(await textOf(answer)).toBe(
      'refused: routes_unavailable No route for this request is available.',
    )
    expect(await ledger()).toEqual(NOT_BILLED)
    expect(served).toEqual([])
  })

  test('whose connection ends before its first chunk is refused, and costs nothing', async () => {
    const { answer, chunkStream, ledger, ended } = await sentSeparately()
    chunkStream.lose()
    expect(await textOf(answer)).toBe(
      'refused: service_unavailable The enclave that signs receipts cannot be reached.',
    )
    expect([await ledger(), ended]).toEqual([NOT_BILLED, [true]])
  })

  test.each(['response', 'request'])(
    'ends with its client (whose %s ends), and what was produced is billed',
    async (notice) => {
      const client = new AbortController()
      const { answer, chunkStream, ledger, asked, ended, served } = await sentSeparately({
        clientSignal: client.signal,
      })
      chunkStream.take(utf8(OPENING))
      const { body } = await answer
      if (notice === 'response') await body?.cancel()
      else client.abort()
      await chunkStream.over
      chunkStream.takeEnd(sent(STOPPED))
      expect(await ledger()).toEqual(BILLED)
      expect([asked, ended]).toEqual([[], [true]])
      await body?.cancel()
      expect(await Promise.all(served)).toHaveLength(1)
    },
  )

  test('whose client leaves before its first chunk is billed by the answer to that, and leaves no timer', async () => {
    const timers = ownTimers()
    const client = new AbortController()
    const { answer, chunkStream, ledger, asked, ended } = await sentSeparately({
      clientSignal: client.signal,
    })
    const told = textOf(answer)
    // The provider has accepted the request by then.
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
    client.abort()
    await chunkStream.over
    chunkStream.takeEnd(sent(STOPPED))
    expect(await told).toMatch(/^refused: /)
    expect(await ledger()).toEqual(BILLED)
    expect([asked, ended, timers.left()]).toEqual([[], [true], 0])
  })

  test('whose time is up ends with an error event after its last chunk, and is billed', async () => {
    const timeouts = { stream_ms: 60_000 }
    const { answer, chunkStream, ledger, asked } = await sentSeparately({ timeouts })
    chunkStream.take(utf8(OPENING))
    const text = (await answer).text()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await text).toMatch(
      /"content":"one"[^\n]*\n\ndata: \{"error":[^\n]*"message":"The answer took longer than a stream may last\."[^\n]*"code":"upstream_timeout"/,
    )
    expect([await ledger(), asked]).toEqual([BILLED, ['end']])
  })

  test('whose time is up is closed where its client does not read, and is billed', async () => {
    const timers = ownTimers()
    const timeouts = { stream_ms: 60_000 }
    const { answer, chunkStream, ledger } = await sentSeparately({ timeouts })
    chunkStream.take(utf8(OPENING))
    const { body } = await answer
    await vi.advanceTimersByTimeAsync(62_000)
    expect(await ledger()).toEqual(BILLED)
    await expect(body?.getReader().read()).rejects.toBeUndefined()
    expect(timers.left()).toBe(0)
  })

  test('whose daemon is lost in the middle ends with an error event after an event that is ended, and is billed', async () => {
    const { answer, chunkStream, ledger, asked, ended } = await sentSeparately()
    chunkStream.take(utf8(`${OPENING}data: {"id"`))
    const text = (await answer).text()
    chunkStream.lose()
    expect(await text).toMatch(
      /"content":"one"[^\n]*\n\ndata: \{"id"\n\ndata: \{"error":[^\n]*"message":"The enclave that signs receipts cannot be reached\."[^\n]*"code":"service_unavailable"/,
    )
    expect([await ledger(), asked, ended]).toEqual([BILLED, ['end'], [true]])
  })

  test('that is recorded for repeats is read here, and is kept as it was delivered', async () => {
    const { idempotent, kept } = recording()
    const { answer, chunkStream, ledger, served } = await sentSeparately({ idempotent })
    chunkStream.take(utf8(OPENING))
    const text = (await answer).text()
    chunkStream.takeEnd(sent(RECORD))
    expect(await text).toMatch(WHOLE_ANSWER)
    expect([kept, await ledger()]).toEqual([[await text], BILLED])
    expect(await Promise.all(served)).toHaveLength(1)
  })

  test('that begins after its headers were sent is read here', async () => {
    const timeouts = { stream_headers_after_ms: 100, keep_alive_ms: 1_000 }
    const { answer, chunkStream, ledger, served } = await sentSeparately({ timeouts })
    await vi.advanceTimersByTimeAsync(100)
    const text = (await answer).text()
    expect(served).toEqual([])
    await vi.advanceTimersByTimeAsync(1_000)
    chunkStream.take(utf8(OPENING))
    chunkStream.takeEnd(sent(RECORD))
    expect(await text).toMatch(/^: keep-alive\n\ndata: .*"content":"one".*\[DONE\]\n\n$/s)
    expect(await ledger()).toEqual(BILLED)
    expect(await Promise.all(served)).toHaveLength(1)
  })

  test('that is read here ends with an error event where its daemon is lost', async () => {
    const { idempotent } = recording()
    const { answer, chunkStream, ledger } = await sentSeparately({ idempotent })
    chunkStream.take(utf8(OPENING))
    const body = (await answer).body?.pipeThrough(new TextDecoderStream()).getReader()
    expect((await body?.read())?.value).toBe(OPENING)
    chunkStream.lose()
    expect((await body?.read())?.value).toMatch(/^data: \{"error":.*"code":"service_unavailable"/)
    expect(await ledger()).toEqual(BILLED)
  })
})

describe('a chunk stream', () => {
  test('is given up where the chunks come in the answer', async () => {
    const { answer, ledger, ended, served } = await sentSeparately({
      chunks: 'written',
      endStream: async () => RECORD,
    })
    expect(await textOf(answer)).toMatch(WHOLE_ANSWER)
    expect([await ledger(), ended, served]).toEqual([BILLED, [true], []])
  })

  test('is given up where its attempt fails', async () => {
    const timeouts = { stream_open_ms: 1_000 }
    const { answer, ledger, asked, ended } = await sentSeparately({ neverAnswers: true, timeouts })
    const told = textOf(answer)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await told).toBe('refused: routes_unavailable No route began to answer in time.')
    expect([await ledger(), asked, ended]).toEqual([NOT_BILLED, [], [true]])
  })
})
