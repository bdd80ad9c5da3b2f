import type { BatchDeps } from '../batching/batcher.ts'
import { after } from '../batching/deadline-timer.ts'

/**
 * Makes the current request check something at intervals while there is anything to check, which keeps that request alive.
 * If the runtime ends the request nevertheless, the next `begin` continues in another one.
 */
export class Watch {
  readonly #host: BatchDeps
  readonly #everyMs: number
  readonly #look: () => boolean
  #lookedAt = Number.NEGATIVE_INFINITY

  /** @param look checks, and returns whether to check again */
  constructor(host: BatchDeps, everyMs: number, look: () => boolean) {
    this.#host = host
    this.#everyMs = everyMs
    this.#look = look
  }

  /** Starts checking, unless another request is doing so. */
  begin(): void {
    const age = Math.abs(this.#host.now() - this.#lookedAt)
    if (age > 2 * this.#everyMs) this.#host.keepAlive(this.#untilOver())
  }

  #untilOver(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const wait = () => {
      this.#lookedAt = this.#host.now()
      after(this.#everyMs, () => {
        if (this.#look()) return wait()
        this.#lookedAt = Number.NEGATIVE_INFINITY
        return resolve()
      })
    }
    wait()
    return promise
  }
}
