/**
 * A lightweight abort signal, together with its controller; the reason is the error to throw. Most requests create signals
 * that are never aborted, and the platform's controllers and signals are freed only by full garbage collections
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

  /** @throws unknown the reason, once it is aborted */
  throwIfAborted(): void {
    if (this.#end !== undefined) throw this.#end.reason
  }

  /**
   * Calls `listener` when the signal aborts; never, if it is aborted already.
   * @returns removes the listener
   */
  onAbort(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Aborts the signal; only the first reason counts. */
  abort(reason: unknown): void {
    if (this.#end !== undefined) return
    this.#end = { reason }
    this.#controller?.abort(reason)
    const listeners = [...this.#listeners]
    this.#listeners.clear()
    for (const listener of listeners) listener()
  }

  /** This signal as a platform signal, for APIs that take no other. */
  ofPlatform(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#end !== undefined) this.#controller.abort(this.#end.reason)
    }
    return this.#controller.signal
  }
}
