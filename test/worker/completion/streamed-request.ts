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
import type { CarriedAnswer } from '../../../src/worker/link/link.ts'
import { createRouteHealth } from '../../../src/worker/routing/health.ts'
import type { PlannedAttempt } from '../../../src/worker/routing/plan.ts'
import { JoinWindow } from '../../../src/worker/stream/join-window.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { chatRequest, chatRoute } from '../../support/chat-fixtures.ts'
import { carriedCall } from '../../support/carried-call.ts'
import { addCustomer, askOf } from '../../support/ledger.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'
import type { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import type { ChunkStream } from '../../../src/worker/chunks/chunk-stream.ts'
import type { LinkInit } from '../../../src/worker/link/link-calls.ts'
import type { IdempotentRequest } from '../../../src/worker/idempotency/idempotent-request.ts'

/** A streamed request, with a daemon and a ledger. */

export const OPENING =
  'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"one"}}]}\n\n'
export const WHOLE = `${OPENING}data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}\n\ndata: [DONE]\n\n`

export const RECORD: StreamRecord = {
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
export const TIMERS = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'Date',
] as const

export interface Given {
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
  /** Where the chunks may be sent. */
  readonly chunkStream?: ChunkStream
  /** Where the daemon says that they are; in its answer unless given. */
  readonly chunks?: string
  readonly endStream?: () => Promise<StreamRecord>
  readonly idempotent?: IdempotentRequest
  readonly clientSignal?: AbortSignal
}

/** A streamed request whose provider has answered whole, with its ledger. */
export async function streamed({
  written,
  timeouts,
  daemonAlive,
  format = chatFormat(false),
  attempts = [ATTEMPT],
  reads: given = [written ? OPENING : WHOLE],
  takeMemory = () => {},
  neverAnswers = false,
  chunkStream,
  chunks = 'written',
  endStream = async () => RECORD,
  idempotent,
  clientSignal = new AbortController().signal,
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
  const asked = Promise.withResolvers<OwnSignal>()
  const egress = async (
    _provider: string,
    _path: string,
    init: LinkInit,
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
    const headers = written ? { [EGRESS_CHUNKS_HEADER]: chunks } : {}
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
      endStream,
      streamRecord: async (json: string): Promise<unknown> => JSON.parse(json),
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
    yieldDuring: (wait: () => Promise<unknown>) => wait(),
    carriedCalls: { begin: () => carriedCall() },
    openChunkStream: () => chunkStream,
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
    idempotent,
    daemonAlive,
    clientSignal,
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
function rejectsWith(signal: OwnSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.onAbort(() => reject(signal.reason))
  })
}

/** The text of an answer, or what it was refused with. */
export async function textOf(answer: Promise<Response>): Promise<string> {
  try {
    return await (await answer).text()
  } catch (error) {
    const { code, message } = toApiError(error)
    return `refused: ${code} ${message}`
  }
}

export const BILLED = {
  rows: [{ prompt_tokens: 7, completion_tokens: 5 }],
  reservations: [],
}
export const NOT_BILLED = { rows: [], reservations: [] }
