/** A stream with frames at a fixed interval. */
export interface PacedStream {
  readonly everyMs: number
  /** The number of remaining frames. */
  left: number
  /** When the next frame is due: ms, by `performance.now`. */
  dueAt: number
  frame(): void
  end(): void
}

const TICK_MS = 2

/** Sends the frames of all streams at their times, with one timer for all of them. */
export class Pacer {
  readonly #streams = new Set<PacedStream>()
  #timer: NodeJS.Timeout | undefined

  add(stream: PacedStream): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => this.#tick(performance.now()), TICK_MS)
  }

  drop(stream: PacedStream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(now: number): void {
    for (const stream of this.#streams) {
      while (stream.dueAt <= now && stream.left > 0) {
        stream.left -= 1
        stream.dueAt += stream.everyMs
        stream.frame()
      }
      if (stream.left > 0) continue
      this.drop(stream)
      stream.end()
    }
  }
}
