import type { FromDaemon } from '../../protocol/boot.ts'
import type { UnsealDocument } from '../../protocol/unseal.ts'

/** Passes documents to the supervisor one after another, so that each answer belongs to its document. */
export class Offers {
  readonly #notify: (message: FromDaemon) => void
  #turn: Promise<unknown> = Promise.resolve()
  #answered: ((problem: string | null) => void) | undefined

  constructor(notify: (message: FromDaemon) => void) {
    this.#notify = notify
  }

  /**
   * Submits a document.
   * @returns why its secrets did not take effect, or null
   */
  offer(document: UnsealDocument): Promise<string | null> {
    const turn = this.#turn.then(() => {
      const { promise, resolve } = Promise.withResolvers<string | null>()
      this.#answered = resolve
      this.#notify({ type: 'unseal_offered', document })
      return promise
    })
    this.#turn = turn
    return turn
  }

  answered(problem: string | null): void {
    this.#answered?.(problem)
    this.#answered = undefined
  }
}
