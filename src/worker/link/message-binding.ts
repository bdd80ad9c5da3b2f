import {
  answerHeadSchema,
  isPlainValue,
  MESSAGE_KINDS,
  SMALL_BODY_BYTES,
  waitingHeadSchema,
} from '../../protocol/link-messages.ts'
import { EGRESS_CHUNKS_HEADER, EGRESS_ERROR_HEADER, LINK_PATHS } from '../../protocol/link.ts'
import { utf8 } from '../../protocol/bytes.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { KeptConnection } from '../calls/kept-connection.ts'
import type { OwnSignal } from '../calls/own-signal.ts'
import { ConnectionEnded, type Reply, type SmallCall } from '../calls/message-connection.ts'
import {
  BOUND_ORIGIN,
  HttpCalls,
  type LinkBinding,
  type LinkCalls,
  type LinkInit,
} from './link-calls.ts'
import type { LinkAnswer } from './link-answer.ts'
import { MessageAnswer } from './message-answer.ts'

/** For this time after an answer that was too large for a message, the path is called over HTTP, ms. */
const LARGE_MS = 60_000

/**
 * Makes small calls as messages over one connection to the daemon, which costs about half of an HTTP request. All other
 * calls, and all calls while there is no such connection, go over HTTP. Both ways look the same to the caller (an answer, or
 * a call that broke off); but only a message can request a whole answer.
 */
export class MessageBinding implements LinkCalls {
  readonly #http: HttpCalls
  readonly #host: BatchDeps
  readonly #origin: string
  readonly #kept: KeptConnection
  /** When the last answer under each path was too large for a message, ms since the epoch. */
  readonly #largeAt = new Map<string, number>()

  /** @param ended called when an open connection has ended, with the number of its open calls */
  constructor(
    binding: LinkBinding,
    host: BatchDeps,
    ended: (calls: number) => void,
    origin = BOUND_ORIGIN,
  ) {
    this.#http = new HttpCalls(binding)
    this.#host = host
    this.#origin = origin
    const url = `${origin}${LINK_PATHS.messages}`
    this.#kept = new KeptConnection({ binding, url }, host, ended)
  }

  async fetch(url: string, init: LinkInit = {}): Promise<LinkAnswer> {
    const call = this.#smallCall(url, init)
    const connection = call && this.#kept.forCall(call)
    if (call === undefined || connection === undefined) return this.#http.fetch(url, init)
    const { signal } = init
    signal?.throwIfAborted()
    try {
      return await this.#answerOf(await connection.call(call, signal), call, init)
    } catch (error) {
      if (!(error instanceof ConnectionEnded) || !mayRepeat(call, error)) throw error
      signal?.throwIfAborted()
      return this.#http.fetch(url, init)
    }
  }

  /** The call as a message; undefined where the call, or the answer to be expected, is not small. */
  #smallCall(url: string, init: LinkInit): SmallCall | undefined {
    const { method, headers, body, whole, hasSmallAnswer = false } = init
    const path = url.slice(this.#origin.length)
    if (method !== 'POST' || !(hasSmallAnswer || this.#hasSmallAnswer(path))) return undefined
    const named = plainHeaders(headers)
    if (named === undefined || (isForStream(named) && !hasSmallAnswer)) return undefined
    const bytes = typeof body === 'string' ? utf8(body) : body
    if (!(bytes instanceof Uint8Array) || bytes.length > SMALL_BODY_BYTES) return undefined
    return { head: { path, headers: named, ...(whole && { whole }) }, body: bytes }
  }

  #hasSmallAnswer(path: string): boolean {
    if (path === LINK_PATHS.sign) return true
    if (!path.startsWith(`${LINK_PATHS.egress}/`)) return false
    const largeAt = this.#largeAt.get(path)
    if (largeAt === undefined) return true
    const age = this.#host.now() - largeAt
    return age < 0 || age > LARGE_MS
  }

  #answerOf(
    { kind, head, body }: Reply,
    { head: { path } }: SmallCall,
    { signal, hasSmallAnswer = false }: LinkInit,
  ): LinkAnswer | Promise<LinkAnswer> {
    const headJson: unknown = JSON.parse(head)
    if (kind === MESSAGE_KINDS.answer || kind === MESSAGE_KINDS.broken) {
      return new MessageAnswer(
        answerHeadSchema.parse(headJson),
        body,
        kind === MESSAGE_KINDS.answer,
      )
    }
    if (kind !== MESSAGE_KINDS.waiting) throw new Error('a message that only a worker sends')
    // The path is not marked for a requested stream: that its chunks came in the answer says nothing about the size of whole
    // answers.
    if (!hasSmallAnswer) this.#largeAt.set(path, this.#host.now())
    return this.#fetchWaiting(waitingHeadSchema.parse(headJson).waiting, signal)
  }

  /**
   * Fetches an answer that waits at the daemon.
   * @throws Error when it no longer waits there, like a call that broke off: the call itself was not refused
   */
  async #fetchWaiting(id: string, signal: OwnSignal | undefined): Promise<Response> {
    const response = await this.#http.fetch(`${this.#origin}${LINK_PATHS.waiting}/${id}`, {
      redirect: 'manual',
      ...(signal && { signal }),
    })
    if (response.headers.get(EGRESS_ERROR_HEADER) !== 'not_found') return response
    await response.body?.cancel()
    throw new Error('the waiting answer is no longer there')
  }
}

/** Whether a call with these headers is for a stream, or for chunks in its answer. */
function isForStream(headers: Readonly<Record<string, string>>): boolean {
  return EGRESS_CHUNKS_HEADER in headers || headers['accept'] === 'text/event-stream'
}

/**
 * Whether a call may be repeated after its connection ended: signing the same receipts twice is harmless, but a provider
 * must not be called twice.
 */
function mayRepeat({ head: { path } }: SmallCall, { wasSent }: ConnectionEnded): boolean {
  return !wasSent || path === LINK_PATHS.sign
}

/** Headers as a record with lower-case names; undefined where they were given in another form. */
function plainHeaders(headers: RequestInit['headers']): Record<string, string> | undefined {
  if (headers === undefined) return {}
  const named: Record<string, string> = {}
  if (headers instanceof Headers || Array.isArray(headers)) return undefined
  for (const [name, value] of Object.entries(headers)) {
    if (!isPlainValue(value)) return undefined
    named[name.toLowerCase()] = value
  }
  return named
}
