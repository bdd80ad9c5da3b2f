/**
 * Shared limit for the unfinished events of all streams, beyond what each stream may hold by itself, and for answers
 * that are gathered; bytes.
 */
const TOTAL_BYTES = 256 * 1024 * 1024

/** The share of the memory that one stream has taken. */
export interface StreamMemory {
  /** @throws Error when too little is left, in total or for this owner */
  take(bytes: number): void
  /** Gives everything back; `take` must not be called after that. */
  giveBack(): void
}

/** How many bytes each thread has taken: one number per thread, in shared memory. */
export type TakenByThread = Int32Array

/** @returns counters in shared memory, one for each of `threads` threads */
export function countersFor(threads: number): TakenByThread {
  return new Int32Array(new SharedArrayBuffer(Math.max(1, threads) * Int32Array.BYTES_PER_ELEMENT))
}

/**
 * Memory that the large events of many streams and small gathered answers share, across all threads. An owner may take
 * more only while what it holds in this thread is at most what remains free in total, so that something is always left
 * for the next owner.
 */
export class EventMemory {
  readonly #total: number
  readonly #taken: TakenByThread
  readonly #own: number
  /** What each owner holds in this thread, bytes. */
  readonly #held = new Map<string, number>()

  /** @param own the index of this thread in `taken` */
  constructor(totalBytes = TOTAL_BYTES, taken: TakenByThread = countersFor(1), own = 0) {
    this.#total = totalBytes
    this.#taken = taken
    this.#own = own
  }

  forStream(owner: string): StreamMemory {
    let taken = 0
    return {
      take: (bytes) => {
        const held = this.#heldBy(owner)
        Atomics.add(this.#taken, this.#own, bytes)
        const left = this.#total - this.#sum()
        if (held > left) {
          Atomics.sub(this.#taken, this.#own, bytes)
          throw new Error('no memory is left for events')
        }
        this.#hold(owner, held + bytes)
        taken += bytes
      },
      giveBack: () => {
        Atomics.sub(this.#taken, this.#own, taken)
        this.#hold(owner, this.#heldBy(owner) - taken)
        taken = 0
      },
    }
  }

  /** The share for a gathered answer of a provider: its owner is the provider, since the customer is not known here. */
  forAnswer(provider: string): StreamMemory {
    return this.forStream(`answers of ${provider}`)
  }

  #heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  #hold(owner: string, bytes: number): void {
    if (bytes > 0) this.#held.set(owner, bytes)
    else this.#held.delete(owner)
  }

  #sum(): number {
    return this.#taken.reduce((sum, _, place) => sum + Atomics.load(this.#taken, place), 0)
  }
}

/** Gives back everything that an ended thread had taken. */
export function giveBackOf(taken: TakenByThread, thread: number): void {
  Atomics.store(taken, thread, 0)
}
