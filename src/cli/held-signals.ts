import type { EventEmitter } from 'node:events'

/**
 * Holds signals that arrive before the program is ready to act on them. Without a listener, Node would end the process.
 */
export class HeldSignals {
  readonly #waiting = new Set<NodeJS.Signals>()
  readonly #actions = new Map<NodeJS.Signals, () => void>()

  constructor(source: Pick<EventEmitter, 'on'>, signals: readonly NodeJS.Signals[]) {
    for (const signal of signals) source.on(signal, () => this.#came(signal))
  }

  /** Calls `act` for each such signal from now on, and once now if any has already arrived. */
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
