import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { configSchema } from '../../../src/protocol/config.ts'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { EGRESS_CHUNKS_HEADER } from '../../../src/protocol/link.ts'
import type { StreamRecord } from '../../../src/protocol/stream-record.ts'
import { after } from '../../../src/worker/batching/deadline-timer.ts'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import type { AdmittedChat } from '../../../src/worker/completion/admitted.ts'
import type { AnswerFormat } from '../../../src/worker/completion/format.ts'
import { answerStream } from '../../../src/worker/completion/stream-reply.ts'
import type { Context } from '../../../src/worker/context.ts'
import { toApiError } from '../../../src/worker/http/to-api-error.ts'
import { LinkUnavailable, type CarriedAnswer } from '../../../src/worker/link/link.ts'
import { createRouteHealth } from '../../../src/worker/routing/health.ts'
import type { PlannedAttempt } from '../../../src/worker/routing/plan.ts'
import { JoinWindow } from '../../../src/worker/stream/join-window.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { DOORS } from '../../support/doors.ts'
import { chatRequest, chatRoute } from '../../support/chat-fixtures.ts'
import { carriedCall } from '../../support/carried-call.ts'
import { addCustomer, askOf } from '../../support/ledger.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'
import { ownTimers } from '../../support/own-timers.ts'

const OPENING =
  'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"one"}}]}\n\n'
const WHOLE = `${OPENING}data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}\n\ndata: [DONE]\n\n`

const RECORD: StreamRecord = {
  ending: { kind: 'complete' },
  finish_reason: 'stop',
  tail: { events: 0, blocks: 0, open: null, output: [] },
  counts: { prompt: 7, completion: 5, uncounted_text_bytes: 0 },
  provider_response_id: null,
  provider_sha256: 'a'.repeat(64),
  client_sha256: 'b'.repeat(64),
}

const ROUTE = chatRoute({ pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 2 } })
const PINNED = {
  ...ROUTE,
  provider: { ...ROUTE.provider, adapter: 'tinfoil' as const, isCarried: true },
}
const ATTEMPT: PlannedAttempt = { route: PINNED, entry: 0, effort: undefined, failover: false }

/** Digests take real time, which a test waits for by turns of the event loop. */
const TIMERS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] as const

beforeEach(() => void vi.useFakeTimers({ toFake: [...TIMERS] }))
afterEach(() => void vi.useRealTimers())

interface Given {
  /** Whether the daemon writes the chunks. */
  readonly written: boolean
  readonly timeouts?: object
  readonly daemonAlive?: Promise<unknown>
  readonly format?: AnswerFormat
  readonly attempts?: readonly PlannedAttempt[]
  /** What the worker reads; a whole answer unless given. */
  readonly reads?: readonly string[]
  readonly takeMemory?: (bytes: number) => void
  readonly neverAnswers?: boolean
}

/** A streamed request whose provider has answered whole, with its ledger. */
async function streamed({
  written,
  timeouts,
  daemonAlive,
  format = chatFormat(false),
  attempts = [ATTEMPT],
  reads: given = [written ? OPENING : WHOLE],
  takeMemory = () => {},
  neverAnswers = false,
}: Given) {
  const db = openSqlite()
  const key = await addCustomer(db, { balance: 10_000_000_000n })
  const storage = sharedStorage(db)
  const admission = await admit(
    storage.customer(key.customerId),
    askOf(key, 'r', { nano: 1_000_000n }),
  )
  const config = configSchema.parse({
    service: { name: 'router', mode: 'local', ...(timeouts && { timeouts }) },
    providers: {},
    routes: [],
  })
  const opened = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<AbortSignal>()
  const egress = async (
    _provider: string,
    _path: string,
    init: RequestInit,
  ): Promise<CarriedAnswer> => {
    const reads = [...given]
    const source = {
      pull: (controller: ReadableStreamDefaultController<Uint8Array>) => {
        const text = reads.shift()
        if (text === undefined) return controller.close()
        controller.enqueue(utf8(text))
        // What has been read is passed on by then.
        setImmediate(opened.resolve)
      },
    }
    const body = new ReadableStream<Uint8Array>(source, { highWaterMark: 0 })
    const { signal } = init
    signal?.throwIfAborted()
    if (signal) asked.resolve(signal)
    if (neverAnswers) await rejectsWith(signal)
    const headers = written ? { [EGRESS_CHUNKS_HEADER]: 'written' } : {}
    return { response: new Response(body, { headers }), whole: undefined }
  }
  const works: Promise<unknown>[] = []
  const parts = {
    requestId: 'r',
    config,
    configurationSha256: 'c'.repeat(64),
    storage,
    link: {
      egress,
      endStream: async () => RECORD,
      state: async () => undefined,
    },
    health: createRouteHealth(config.service.breaker, config.service.selection),
    now: Date.now,
    after,
    newId: () => 'an id',
    log: () => {},
    takeMemory,
    finishInTurn: (work: () => Promise<unknown>) => work(),
    coalesceSettlements: (_group: string, work: () => Promise<unknown>) => work(),
    aside: (wait: () => Promise<unknown>) => wait(),
    carriedCalls: { begin: () => carriedCall() },
    chunkSeat: () => undefined,
    joinWindow: new JoinWindow(Date.now, 3_000),
    waitUntil: (work: Promise<unknown>) => void works.push(work),
  }
  // A streamed answer takes no other part of a context.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const context = parts as unknown as Context
  const admitted: AdmittedChat = {
    context,
    endpoint: '/v1/chat/completions',
    chat: chatRequest({
      model: 'glm-5',
      stream: true,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
    format,
    dropped: [],
    options: { receipt: false, hurried: false, timeoutMs: 1 },
    plan: { requestedRoute: 'glm-5', ocr: false, attempts },
    constraints: undefined,
    admission,
    receiptId: null,
    headers: {},
    promptEstimate: 20,
    cacheSalt: undefined,
    clientRequest: utf8('{}'),
    once: undefined,
    daemonAlive,
    clientSignal: new AbortController().signal,
  }
  return {
    answer: answerStream(admitted),
    /** Resolves when the first bytes of the provider's answer have been read. */
    opened: opened.promise,
    /** The signal that ends the call of the provider. */
    asked: asked.promise,
    ledger: async () => {
      await Promise.all(works)
      const [rows, reservations] = await db.batch([
        { sql: 'SELECT prompt_tokens, completion_tokens FROM usage', params: [] },
        { sql: 'SELECT request_id FROM reservations', params: [] },
      ])
      return { rows, reservations }
    },
  }
}

/** Rejects when the signal aborts, with its reason. */
function rejectsWith(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason))
  })
}

/** The text of an answer, or what it was refused with. */
async function textOf(answer: Promise<Response>): Promise<string> {
  try {
    return await (await answer).text()
  } catch (error) {
    const { code, message } = toApiError(error)
    return `refused: ${code} ${message}`
  }
}

/** A format that fails where a stream is already delivered. */
const BROKEN_FORMAT: AnswerFormat = {
  ...chatFormat(false),
  lastEvents: (head) => ({
    ...chatFormat(false).lastEvents(head),
    close: () => {
      throw new Error('an unexpected error')
    },
  }),
}

const BILLED = {
  rows: [{ prompt_tokens: 7, completion_tokens: 5 }],
  reservations: [],
}
const NOT_BILLED = { rows: [], reservations: [] }

describe.each([
  ['that the worker reads', false],
  ['that the daemon writes', true],
] as const)('a stream %s', (_, written) => {
  test('is delivered and billed', async () => {
    const timers = ownTimers()
    const { answer, ledger } = await streamed({ written })
    expect(await textOf(answer)).toMatch(/"content":"one".*"finish_reason":"stop"/s)
    expect(await ledger()).toEqual(BILLED)
    expect(timers.left()).toBe(0)
  })

  test('ends with an error event after an unexpected error, and what was produced is billed', async () => {
    const { answer, ledger } = await streamed({ written, format: BROKEN_FORMAT })
    expect(await textOf(answer)).toMatch(
      /"content":"one".*"error":\{"message":"The router failed.*"code":"internal"/s,
    )
    expect(await ledger()).toEqual(BILLED)
  })

  test.each([
    ['a status', 30_000, /^refused: routes_unavailable No route began to answer in time\.$/],
    ['an event', 100, /^(: keep-alive\n\n)*data: \{"error":[^\n]*"code":"routes_unavailable"/],
  ])(
    'whose daemon answers after the time for opening is told so by %s, without output, and not billed',
    async (_how, stream_headers_after_ms, expected) => {
      const { promise: daemonAlive, resolve } = Promise.withResolvers<void>()
      const timeouts = { stream_open_ms: 1_000, stream_headers_after_ms }
      const { answer, ledger, opened } = await streamed({ written, timeouts, daemonAlive })
      const told = textOf(answer)
      await opened
      await vi.advanceTimersByTimeAsync(1_000)
      resolve()
      expect(await told).toMatch(expected)
      expect(await ledger()).toEqual(NOT_BILLED)
    },
  )

  test.each([
    ['before its provider has answered', true],
    ['after the first event', false],
  ])(
    'whose daemon is found dead %s lets its provider go at once, and costs nothing',
    async (_when, neverAnswers) => {
      const { promise: daemonAlive, reject } = Promise.withResolvers<never>()
      daemonAlive.catch(() => {})
      const parts = await streamed({ written, daemonAlive, neverAnswers })
      const told = textOf(parts.answer)
      const signal = await parts.asked
      if (!neverAnswers) await parts.opened
      expect(signal.aborted).toBe(false)
      reject(new LinkUnavailable('the enclave daemon cannot be reached'))
      await Promise.allSettled([daemonAlive])
      expect(signal.aborted).toBe(true)
      expect(await told).toMatch(/^refused: service_unavailable /)
      expect(await parts.ledger()).toEqual(NOT_BILLED)
    },
  )

  test('that has failed leaves no timer behind, although its daemon is found dead later', async () => {
    const timers = ownTimers()
    const dead = new LinkUnavailable('the enclave daemon cannot be reached')
    const daemonAlive = new Promise((_resolve, reject) => setTimeout(() => reject(dead), 5_000))
    const { answer } = await streamed({ written, daemonAlive, attempts: [] })
    expect(await textOf(answer)).toMatch(/^refused: routes_unavailable /)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(timers.left()).toBe(0)
  })
})

describe('the text of a response, all of which its last events repeat,', () => {
  const MIB = 1024 * 1024
  const format = DOORS['responses']?.format ?? chatFormat(false)
  const piece = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${'x'.repeat(MIB)}"}}]}\n\n`

  /** Its last event and the completion tokens that are billed, for an answer of so many MiB. */
  async function longAnswer(mib: number, memory: number) {
    let left = memory
    const takeMemory = (bytes: number) => {
      if (bytes > left) throw new Error('no memory is left')
      left -= bytes
    }
    const reads = [...Array.from({ length: mib }, () => piece), WHOLE]
    const { answer, ledger } = await streamed({ written: false, format, reads, takeMemory })
    const text = await textOf(answer)
    const { rows, reservations } = await ledger()
    const last = text.slice(text.lastIndexOf('event: '))
    const [failure] = /"code":"[a-z_]+"/.exec(last.slice(-2_000)) ?? []
    return { last: last.slice(0, last.indexOf('\n')), failure, rows: rows?.length, reservations }
  }

  test('is whole where there is memory for it', async () => {
    const seen = await longAnswer(2, 16 * MIB)
    expect(seen).toMatchObject({ last: 'event: response.completed', rows: 1, reservations: [] })
  })

  test.each([
    ['there is no memory for', 4, 2 * MIB, 'server_is_overloaded'],
    ['is longer than one answer may be', 9, 256 * MIB, 'invalid_prompt'],
  ])(
    'that %s ends the stream as an error, and what was produced is billed',
    async (_, mib, memory, code) => {
      expect(await longAnswer(mib, memory)).toEqual({
        last: 'event: response.failed',
        failure: `"code":"${code}"`,
        rows: 1,
        reservations: [],
      })
    },
  )
})
