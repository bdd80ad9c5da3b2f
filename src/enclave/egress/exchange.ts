import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { MalformedAnswer, MAX_INTERIM, isFinalStatus } from '../outbound/final-status.ts'
import type { HeaderValues } from './headers.ts'
import { ProviderAnswer } from './provider-answer.ts'

/** What is sent to a provider. */
export interface ProviderRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderValues
  /** A stream is read no faster than the provider reads. */
  readonly body: Uint8Array | Readable | null
}

/**
 * Messages of undici's HTTP/1.1 client for an upgrade and for `100 Continue`, neither of which the daemon ever
 * requests.
 */
const UNASKED: ReadonlySet<string> = new Set(['bad upgrade', 'bad response'])

/**
 * The names of undici's errors for bytes that are not valid HTTP/1.1: unreadable or contradictory headers, or more than
 * 16 KiB of them. Names are compared because importing the error classes would load all of undici.
 */
const UNREADABLE: ReadonlySet<string> = new Set([
  'HTTPParserError',
  'HeadersOverflowError',
  'ResponseContentLengthMismatchError',
])

/**
 * One request and its answer, as an undici dispatch handler. Streams and a promise for each step would cost as much as
 * everything else that the daemon does for a call.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #take: (answer: ProviderAnswer) => void
  readonly #ended: () => void
  readonly #begun = Promise.withResolvers<void>()
  #controller: Dispatcher.DispatchController | undefined
  #abandoned: Error | undefined
  #answer: ProviderAnswer | undefined
  #interim = 0

  /**
   * @param take receives the answer before any of its body is reported; an error that it throws ends the exchange
   * @param ended called once, when the connection may serve another exchange or is closed
   */
  constructor(take: (answer: ProviderAnswer) => void, ended: () => void) {
    this.#take = take
    this.#ended = ended
  }

  /**
   * Resolves when `take` has accepted the answer.
   * @throws MalformedAnswer when the status is not final, when there are too many interim answers or an upgrade, or
   *   when the bytes are not HTTP/1.1; not when the connection broke off, which counts as no answer
   * @throws unknown what `take` threw, else the error that ended the connection
   */
  get begun(): Promise<void> {
    return this.#begun.promise
  }

  /**
   * Aborts the exchange and closes its connection. May be called at any time but while the answer reports bytes: undici
   * would fail an assertion, for which `ProviderAnswer.destroy` waits.
   */
  abandon(reason: Error): void {
    this.#abandoned = reason
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#abandoned !== undefined) controller.abort(this.#abandoned)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: HeaderValues,
  ): void {
    if (status >= 100 && status < 200 && status !== 101) {
      this.#interim += 1
      if (this.#interim > MAX_INTERIM) throw new MalformedAnswer('too many interim answers')
      return
    }
    if (!isFinalStatus(status)) throw new MalformedAnswer('an invalid status')
    const answer = new ProviderAnswer(status, headers, controller)
    this.#take(answer)
    this.#answer = answer
    this.#begun.resolve()
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Buffer): void {
    this.#answer?.give(bytes)
  }

  onResponseEnd(): void {
    this.#answer?.finish()
    this.#ended()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#begun.reject(malformedBy(error) ?? error)
    this.#answer?.close()
    this.#ended()
  }
}

function malformedBy({ message, name }: Error): MalformedAnswer | undefined {
  if (UNASKED.has(message)) return new MalformedAnswer('an answer that was not requested')
  if (UNREADABLE.has(name)) return new MalformedAnswer('bytes that are not HTTP/1.1')
  return undefined
}
