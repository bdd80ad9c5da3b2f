/** A worker fetches its answer at once, or never, ms. */
const WAIT_MS = 10_000

/** Answers to messages that are larger than a message may be, until the worker fetches them. */
export class LargeAnswers {
  readonly #process: string
  #count = 0
  readonly #waiting = new Map<
    string,
    { readonly body: Uint8Array; readonly timer: NodeJS.Timeout }
  >()

  /** @param process the id of this process, so that none before it has given an answer the same id */
  constructor(process: string) {
    this.#process = process
  }

  /** Returns the id under which it waits. */
  keep(body: Uint8Array): string {
    this.#count += 1
    const id = `${this.#process}-${this.#count}`
    const timer = setTimeout(() => this.#waiting.delete(id), WAIT_MS)
    this.#waiting.set(id, { body, timer })
    return id
  }

  /** Undefined where none waits under that id. */
  take(id: string): Uint8Array | undefined {
    const found = this.#waiting.get(id)
    if (found === undefined) return undefined
    this.#waiting.delete(id)
    clearTimeout(found.timer)
    return found.body
  }
}
