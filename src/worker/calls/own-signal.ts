/**
 * A signal of the router's own, and what aborts it: the reason is the error to throw. It is for what most requests have and none
 * needs, since the platform's controller and signal are objects that only full collections of garbage take
 * (docs/performance-findings.md).
 */
export class OwnSignal {
  readonly #listeners = new Set<() => void>()
  #end: { readonly reason: unknown } | undefined
  #controller: AbortController | undefined

  get aborted(): boolean {
    return this.#end !== undefined
  }

  get reason(): unknown {
    return this.#end?.reason
  }

  /** @throws the reason, once it is aborted */
  throwIfAborted(): void {
    if (this.#end !== undefined) throw this.#end.reason
  }

  /**
   * Calls `listener` when it is aborted; one that is aborted already calls none.
   * @returns a function that removes the listener
   */
  onAbort(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The first reason stays. */
  abort(reason: unknown): void {
    if (this.#end !== undefined) return
    this.#end = { reason }
    this.#controller?.abort(reason)
    const listeners = [...this.#listeners]
    this.#listeners.clear()
    for (const listener of listeners) listener()
  }

  /** The same as a signal of the platform, for what takes no other. */
  ofPlatform(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#end !== undefined) this.#controller.abort(this.#end.reason)
    }
    return this.#controller.signal
  }
}
