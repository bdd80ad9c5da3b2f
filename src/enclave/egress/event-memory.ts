/** For unfinished events of all streams together, beyond what each may hold, bytes. */
const TOTAL_BYTES = 256 * 1024 * 1024

/** What one stream has taken. */
export interface StreamMemory {
  /** @throws Error when there is not as much left */
  take(bytes: number): void
  /** Gives back everything; nothing may be taken after that. */
  giveBack(): void
}

/** The memory that large events of many streams share. */
export class EventMemory {
  #left: number

  constructor(totalBytes = TOTAL_BYTES) {
    this.#left = totalBytes
  }

  forStream(): StreamMemory {
    let taken = 0
    return {
      take: (bytes) => {
        if (bytes > this.#left) throw new Error('no memory is left for events')
        this.#left -= bytes
        taken += bytes
      },
      giveBack: () => {
        this.#left += taken
        taken = 0
      },
    }
  }
}
