import { utf8 } from '../../protocol/bytes.ts'
import { LEDGER_PATHS } from '../../protocol/ledger-link.ts'
import {
  answerHeadSchema,
  MAX_MESSAGE_BODY_BYTES,
  MESSAGE_KINDS,
  waitingHeadSchema,
} from '../../protocol/link-messages.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { startDeadline } from '../batching/deadline-timer.ts'
import { KeptConnection } from '../calls/kept-connection.ts'
import { ConnectionEnded, type Reply } from '../calls/message-connection.ts'
import { OwnSignal } from '../calls/own-signal.ts'
import { storageError } from './batch-outcome.ts'

/** The pinned mTLS service binding to the ledger process. */
export interface LedgerBinding {
  fetch(url: string, init: RequestInit): Promise<Response>
}

export interface LedgerLinkHost extends BatchDeps {
  /** Called when an open message connection has ended, with the number of its open calls. */
  readonly messagesEnded?: ((calls: number) => void) | undefined
}

export interface LedgerCallTerms {
  /** Number of outcomes that are expected. */
  readonly count: number
  readonly timeoutMs: number
}

type Post = (path: string, body: string, signal: OwnSignal) => Promise<unknown>

/** The binding determines the destination; this host name never leaves the worker. */
const ORIGIN = 'https://ledger'

const decoder = new TextDecoder()

/** Calls the ledger process. Each call has its own deadline. */
export class LedgerLink {
  readonly #binding: LedgerBinding
  readonly #host: LedgerLinkHost
  readonly #kept: KeptConnection

  constructor(binding: LedgerBinding, host: LedgerLinkHost) {
    this.#binding = binding
    this.#host = host
    const target = { binding, url: ORIGIN + LEDGER_PATHS.messages }
    this.#kept = new KeptConnection(target, host, (calls) => host.messagesEnded?.(calls))
  }

  /**
   * Calls over HTTP, for answers that may be large or take long.
   * @throws StorageUnavailable when there is no valid answer in time
   */
  call<Outcome>(path: string, body: string, terms: LedgerCallTerms): Promise<readonly Outcome[]> {
    return this.#outcomes(path, body, terms, (...post) => this.#overHttp(...post))
  }

  /**
   * Calls with a message, which costs less, or over HTTP where that is not possible.
   * @throws StorageUnavailable when there is no valid answer in time
   */
  callSmall<Outcome>(
    path: string,
    body: string,
    terms: LedgerCallTerms,
  ): Promise<readonly Outcome[]> {
    return this.#outcomes(path, body, terms, (...post) => this.#asMessage(...post))
  }

  async #outcomes<Outcome>(
    path: string,
    body: string,
    { count, timeoutMs }: LedgerCallTerms,
    post: Post,
  ): Promise<readonly Outcome[]> {
    const signal = new OwnSignal()
    const passed = () => signal.abort(new Error('the ledger process did not answer in time'))
    const deadline = startDeadline(timeoutMs, this.#host.now, passed)
    try {
      const outcomes = await post(path, body, signal)
      if (!Array.isArray(outcomes) || outcomes.length !== count)
        throw new Error('the ledger process returned the wrong number of outcomes')
      // The ledger is the same program, behind a pinned certificate.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return outcomes as Outcome[]
    } catch (cause) {
      throw storageError('the ledger process does not answer', false, cause)
    } finally {
      deadline.stop()
    }
  }

  async #asMessage(path: string, body: string, signal: OwnSignal): Promise<unknown> {
    const call = { head: { path, headers: {} }, body: utf8(body) }
    const isSmall = call.body.length <= MAX_MESSAGE_BODY_BYTES
    const connection = isSmall ? this.#kept.forCall(call) : undefined
    if (connection === undefined) return this.#overHttp(path, body, signal)
    try {
      return await this.#outcomesIn(await connection.call(call, signal), signal)
    } catch (error) {
      // A call that was sent may have been committed, so it is not retried here.
      if (!(error instanceof ConnectionEnded) || error.wasSent) throw error
      signal.throwIfAborted()
      return this.#overHttp(path, body, signal)
    }
  }

  #outcomesIn({ kind, head, body }: Reply, signal: OwnSignal): unknown {
    const headJson: unknown = JSON.parse(head)
    if (kind === MESSAGE_KINDS.waiting) {
      const path = `${LEDGER_PATHS.waiting}/${waitingHeadSchema.parse(headJson).waiting}`
      return this.#fetch(path, {}, signal)
    }
    if (kind !== MESSAGE_KINDS.answer) throw new Error('the message is not an answer')
    expectSuccess(answerHeadSchema.parse(headJson).status)
    return JSON.parse(decoder.decode(body))
  }

  #overHttp(path: string, body: string, signal: OwnSignal): Promise<unknown> {
    return this.#fetch(path, { method: 'POST', body }, signal)
  }

  async #fetch(path: string, init: RequestInit, signal: OwnSignal): Promise<unknown> {
    const answer = await this.#binding.fetch(ORIGIN + path, {
      ...init,
      signal: signal.ofPlatform(),
    })
    expectSuccess(answer.status)
    return answer.json()
  }
}

function expectSuccess(status: number): void {
  if (status !== 200) throw new Error(`status ${status}`)
}
