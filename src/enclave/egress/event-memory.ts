/** For unfinished events of all streams together, beyond what each may hold, and for answers that are gathered, bytes. */
const TOTAL_BYTES = 256 * 1024 * 1024

/** What one stream has taken. */
export interface StreamMemory {
  /** @throws Error when there is not as much left, or not for this owner */
  take(bytes: number): void
  /** Gives back everything; nothing may be taken after that. */
  giveBack(): void
}

/** How many bytes each thread has taken: one number for each, over shared memory. */
export type TakenByThread = Int32Array

/** @returns memory that several threads count in */
export function countersFor(threads: number): TakenByThread {
  return new Int32Array(new SharedArrayBuffer(Math.max(1, threads) * Int32Array.BYTES_PER_ELEMENT))
}

/**
 * The memory that large events of many streams and small answers share, in all threads together. In each thread an owner holds at most as
 * much as is still free in all of them, so that something is always left for the next one.
 */
export class EventMemory {
  readonly #total: number
  readonly #taken: TakenByThread
  readonly #own: number
  /** What each owner holds in this thread, bytes. */
  readonly #held = new Map<string, number>()

  /** @param own the place of this thread in `taken` */
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

  /** For a whole answer of a provider, whose customer is not known here. */
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

/** Gives back everything that a thread has taken which ended. */
export function giveBackOf(taken: TakenByThread, thread: number): void {
  Atomics.store(taken, thread, 0)
}
