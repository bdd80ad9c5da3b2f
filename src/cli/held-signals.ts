import type { EventEmitter } from 'node:events'

/**
 * Signals that ask a running program for something. Node ends with them as long as nobody listens; here what is asked for
 * before the program is there waits for it.
 */
export class HeldSignals {
  readonly #waiting = new Set<NodeJS.Signals>()
  readonly #actions = new Map<NodeJS.Signals, () => void>()

  constructor(source: Pick<EventEmitter, 'on'>, signals: readonly NodeJS.Signals[]) {
    for (const signal of signals) source.on(signal, () => this.#came(signal))
  }

  /** Acts on each of these signals from now on, and once for all that came before. */
  take(signal: NodeJS.Signals, act: () => void): void {
    this.#actions.set(signal, act)
    if (this.#waiting.delete(signal)) act()
  }

  #came(signal: NodeJS.Signals): void {
    const act = this.#actions.get(signal)
    if (act === undefined) this.#waiting.add(signal)
    else act()
  }
}
