import { EventEmitter } from 'node:events'
import type { AnswerBody, AnswerEvents } from './answer-body.ts'
import type { Begun } from './gather.ts'
import type { HeaderValues } from './headers.ts'
import type { ProviderAnswer } from './provider-answer.ts'

/**
 * A provider's answer that is not read until `release`. Bytes that arrive earlier all the same are kept, and reported
 * after the release.
 */
export class HeldAnswer extends EventEmitter<AnswerEvents> implements AnswerBody {
  readonly #answer: ProviderAnswer
  readonly #kept: (() => void)[]
  /** Counts the bytes of `begun` until they are reported again. */
  readonly #memory: Begun['memory'] | undefined
  #isReleased = false
  #isPaused = false
  #ended = false

  /** @param begun the part of the answer that was already received */
  constructor(answer: ProviderAnswer, begun?: Begun) {
    super()
    this.#answer = answer
    this.#memory = begun?.memory
    this.#kept = (begun?.parts ?? []).map((bytes) => () => this.emit('data', bytes))
    answer.pause()
    answer.on('data', (bytes) => this.#report(() => this.emit('data', bytes)))
    answer.once('end', () => this.#report(() => this.#end()))
    answer.once('close', () => this.#report(() => this.emit('close')))
  }

  get statusCode(): number {
    return this.#answer.statusCode
  }

  get headers(): HeaderValues {
    return this.#answer.headers
  }

  get readableEnded(): boolean {
    return this.#ended
  }

  /** Reports what was kept, as long as the reader does not pause, and from then on everything as it arrives. */
  release(): void {
    this.#isReleased = true
    if (!this.#isPaused) this.#goOn()
  }

  pause(): void {
    this.#isPaused = true
    this.#answer.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#isReleased) this.#goOn()
  }

  destroy(): void {
    this.#kept.length = 0
    this.#memory?.giveBack()
    this.#answer.destroy()
  }

  #goOn(): void {
    while (!this.#isPaused) {
      const report = this.#kept.shift()
      if (report === undefined) return this.#readOn()
      report()
    }
  }

  #readOn(): void {
    this.#memory?.giveBack()
    // Only now: `resume` reports what was already received before it returns.
    this.#answer.resume()
  }

  #report(report: () => void): void {
    if (this.#isReleased && this.#kept.length === 0) report()
    else this.#kept.push(report)
  }

  #end(): void {
    this.#ended = true
    this.emit('end')
  }
}
