import { EventEmitter } from 'node:events'
import type { Dispatcher } from 'undici'
import type { AnswerBody, AnswerEvents } from './answer-body.ts'
import type { HeaderValues } from './headers.ts'

/** The head of a provider's answer, and its body as it is received. It is not a stream: nothing is buffered here. */
export class ProviderAnswer extends EventEmitter<AnswerEvents> implements AnswerBody {
  readonly statusCode: number
  readonly headers: HeaderValues
  readonly #controller: Dispatcher.DispatchController
  #ended = false
  #closed = false
  #unwanted = false

  constructor(
    statusCode: number,
    headers: HeaderValues,
    controller: Dispatcher.DispatchController,
  ) {
    super()
    this.statusCode = statusCode
    this.headers = headers
    this.#controller = controller
  }

  get readableEnded(): boolean {
    return this.#ended
  }

  /** Asks for no more bytes; bytes that were already received may still be reported. */
  pause(): void {
    this.#controller.pause()
  }

  resume(): void {
    if (!this.#closed) this.#controller.resume()
  }

  destroy(): void {
    if (this.#closed || this.#unwanted) return
    this.#unwanted = true
    // Not synchronously: undici may call this while it is about to report the answer's end, and would fail an
    // assertion.
    queueMicrotask(() => {
      if (!this.#closed) this.#controller.abort(new Error('the answer is not wanted'))
    })
  }

  /** Reports bytes of the body. */
  give(bytes: Buffer): void {
    if (!this.#unwanted) this.emit('data', bytes)
  }

  /** Reports that the answer is complete. */
  finish(): void {
    if (!this.#unwanted) {
      this.#ended = true
      this.emit('end')
    }
    this.close()
  }

  /** Reports that the exchange is over. May be called more than once. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.emit('close')
  }
}
