/** In shared memory: how many heartbeats a thread has counted. The number wraps around. */
export type Beats = Int32Array

/** How often a thread is checked, and after how many checks without a heartbeat it counts as frozen. */
export interface Heartbeat {
  readonly everyMs: number
  readonly misses: number
}

/** Far longer than any synchronous step of a carrier: the end of an answer with much text takes about a second. */
export const CARRIER_HEARTBEAT: Heartbeat = { everyMs: 1_000, misses: 10 }

export function newBeats(): Beats {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
}

/** Counts heartbeats as long as nothing blocks this thread's event loop. */
export function startBeating(beats: Beats, { everyMs }: Heartbeat): void {
  setInterval(() => Atomics.add(beats, 0, 1), everyMs / 2).unref()
}

/**
 * Watches another thread's heartbeats. It counts checks, not time, and only checks that run on schedule: when this
 * thread was delayed itself, because the machine was paused or is short of CPU, missing heartbeats say nothing about
 * the other thread.
 */
export class BeatWatch {
  readonly #beats: Beats
  readonly #heartbeat: Heartbeat
  #seen: number
  #misses = 0
  #lookedAt: number

  /** @param now milliseconds that never go back */
  constructor(beats: Beats, heartbeat: Heartbeat, now: number) {
    this.#beats = beats
    this.#heartbeat = heartbeat
    this.#seen = Atomics.load(beats, 0)
    this.#lookedAt = now
  }

  /**
   * Checks once; must be called every `everyMs`.
   * @returns whether the other thread is frozen
   */
  standsStill(now: number): boolean {
    const isLate = now - this.#lookedAt > 2 * this.#heartbeat.everyMs
    const beats = Atomics.load(this.#beats, 0)
    this.#misses = isLate || beats !== this.#seen ? 0 : this.#misses + 1
    this.#seen = beats
    this.#lookedAt = now
    return this.#misses >= this.#heartbeat.misses
  }
}
