import type { FromDaemon } from '../../protocol/boot.ts'
import type { Log } from '../log.ts'
import { CLOCK_BEHIND_MS, type ProvenTime } from './proven-time.ts'

export interface ClockWatchDeps {
  readonly proven: ProvenTime
  /** Records the times of documents that were verified since the last check. */
  readonly refresh: () => void
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
  readonly notify: (message: FromDaemon) => void
  readonly log: Log
}

const BEHIND =
  'the clock is behind a document that was signed already: expired documents and evidence may look valid'
const SET_BACK = 'the clock was set back while the router ran'

/** Reports, once each, that the clock went back: behind a verified document, or behind its own earlier reading. */
export class ClockWatch {
  readonly #deps: ClockWatchDeps
  #last: { readonly now: number; readonly monotonic: number }
  #behind = false

  constructor(deps: ClockWatchDeps) {
    this.#deps = deps
    this.#last = { now: deps.now(), monotonic: deps.monotonic() }
  }

  look(): void {
    const { proven, refresh, now, monotonic } = this.#deps
    refresh()
    const before = this.#last
    this.#last = { now: now(), monotonic: monotonic() }
    const elapsed = this.#last.monotonic - before.monotonic
    if (this.#last.now < before.now + elapsed - CLOCK_BEHIND_MS) this.#tell(SET_BACK)
    const behind = proven.isAhead()
    if (behind && !this.#behind) this.#tell(BEHIND)
    this.#behind = behind
  }

  #tell(reason: string): void {
    this.#deps.log('clock_behind', { reason })
    this.#deps.notify({ type: 'clock_behind', reason })
  }
}

const LOOK_MS = 10_000

/** @returns a function that stops the watch */
export function watchClock(deps: ClockWatchDeps): () => void {
  const watch = new ClockWatch(deps)
  const timer = setInterval(() => watch.look(), LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}
