import type { PipeWriter } from '../../../src/worker/chunks/chunk-stream.ts'

/** The object's end of a pipe, whose client takes what it is told to take. */
export class HandPipe implements PipeWriter {
  readonly written: string[] = []
  /** How long the memory is that each chunk is a part of, bytes. */
  readonly kept: number[] = []
  /** `close` or `abort`, once the pipe has ended. */
  ended: 'close' | 'abort' | undefined
  #waiting: PromiseWithResolvers<void>[] = []
  #isBroken = false
  #takesAll = false

  async write(chunk?: Uint8Array): Promise<void> {
    if (this.#isBroken) throw new Error('the pipe is broken')
    this.written.push(new TextDecoder().decode(chunk))
    this.kept.push(chunk?.buffer.byteLength ?? 0)
    if (this.#takesAll) return
    const waiting = Promise.withResolvers<void>()
    this.#waiting.push(waiting)
    await waiting.promise
  }

  async close(): Promise<void> {
    this.ended = 'close'
  }

  async abort(): Promise<void> {
    this.ended = 'abort'
    this.break()
  }

  get text(): string {
    return this.written.join('')
  }

  /** The client takes so many of the chunks that wait; all of them, and those to come, unless given. */
  take(count = Number.POSITIVE_INFINITY): void {
    this.#takesAll ||= count === Number.POSITIVE_INFINITY
    for (const { resolve } of this.#waiting.splice(0, count)) resolve()
  }

  /** The client has left: nothing is taken any more. */
  break(): void {
    this.#isBroken = true
    for (const { reject } of this.#waiting.splice(0)) reject(new Error('the pipe is broken'))
  }
}
