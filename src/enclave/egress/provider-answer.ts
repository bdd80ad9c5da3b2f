import { EventEmitter } from 'node:events'
import type { Dispatcher } from 'undici'
import type { AnswerBody } from './answer-body.ts'
import type { HeaderValues } from './headers.ts'

interface AnswerEvents {
  data: [Buffer]
  end: []
  close: []
}

/** The head of a provider's answer, and its body as it comes. It is no stream: nothing is buffered here. */
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

  /** Asks for no more bytes; what was received already may still come. */
  pause(): void {
    this.#controller.pause()
  }

  resume(): void {
    if (!this.#closed) this.#controller.resume()
  }

  destroy(): void {
    if (this.#closed || this.#unwanted) return
    this.#unwanted = true
    // Not from within the client, which may be about to report the answer's end, and takes that for impossible then.
    queueMicrotask(() => {
      if (!this.#closed) this.#controller.abort(new Error('the answer is not wanted'))
    })
  }

  /** Reports bytes of the body. */
  give(bytes: Buffer): void {
    if (!this.#unwanted) this.emit('data', bytes)
  }

  /** Reports that the answer has come to its end. */
  finish(): void {
    if (!this.#unwanted) {
      this.#ended = true
      this.emit('end')
    }
    this.close()
  }

  /** Reports that nothing more will come. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.emit('close')
  }
}
