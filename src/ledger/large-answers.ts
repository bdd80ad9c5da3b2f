/** How long an answer is kept, ms. A worker fetches it at once or, where it has disconnected, never. */
const WAIT_MS = 10_000

/** Answers that exceed the size limit of a message, until the worker fetches them over HTTP. */
export class LargeAnswers {
  readonly #process: string
  #count = 0
  readonly #waiting = new Map<
    string,
    { readonly body: Uint8Array; readonly timer: NodeJS.Timeout }
  >()

  /** @param process the id of this process, so that no earlier process has given an answer the same id */
  constructor(process: string) {
    this.#process = process
  }

  /** @returns the id under which the answer waits */
  keep(body: Uint8Array): string {
    this.#count += 1
    const id = `${this.#process}-${this.#count}`
    const timer = setTimeout(() => this.#waiting.delete(id), WAIT_MS)
    this.#waiting.set(id, { body, timer })
    return id
  }

  /** Removes an answer; undefined where none waits under that id. */
  take(id: string): Uint8Array | undefined {
    const found = this.#waiting.get(id)
    if (found === undefined) return undefined
    this.#waiting.delete(id)
    clearTimeout(found.timer)
    return found.body
  }
}
