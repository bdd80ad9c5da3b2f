/** Over shared memory: how often a thread has beaten. The number wraps around. */
export type Beats = Int32Array

/** How often a thread is looked at, and after how many looks without a beat it counts as frozen. */
export interface Heartbeat {
  readonly everyMs: number
  readonly misses: number
}

/** Far longer than any step that a carrier takes at once: the end of an answer with much text takes about a second. */
export const CARRIER_HEARTBEAT: Heartbeat = { everyMs: 1_000, misses: 10 }

export function newBeats(): Beats {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
}

/** Beats as long as nothing blocks this thread. */
export function startBeating(beats: Beats, { everyMs }: Heartbeat): void {
  setInterval(() => Atomics.add(beats, 0, 1), everyMs / 2).unref()
}

/**
 * Looks at another thread's beats. It counts looks, not time, and only those that come in time: while this thread does not
 * run either, because the machine was paused or is short of CPU, silence says nothing of the other one.
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

  /** Looks once; to be called every `everyMs`. Returns whether the other thread stands still. */
  standsStill(now: number): boolean {
    const isLate = now - this.#lookedAt > 2 * this.#heartbeat.everyMs
    const beats = Atomics.load(this.#beats, 0)
    this.#misses = isLate || beats !== this.#seen ? 0 : this.#misses + 1
    this.#seen = beats
    this.#lookedAt = now
    return this.#misses >= this.#heartbeat.misses
  }
}
