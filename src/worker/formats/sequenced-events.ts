import { EventText } from '../stream/event-text.ts'

/** Collects server-sent events that are numbered from 0 over the whole stream. */
export class SequencedEvents {
  readonly #events = new EventText()
  #count: number

  /** @param count number of preceding events */
  constructor(count = 0) {
    this.#count = count
  }

  /** Number of events so far, including the preceding ones. */
  get count(): number {
    return this.#count
  }

  /** Adds a named event with the next number. */
  add(type: string, members: object): void {
    this.#events.add(type, { sequence_number: this.next(), ...members })
  }

  /** Returns the number for an event that the caller writes itself. */
  next(): number {
    return this.#count++
  }

  /** Skips the numbers of `count` events that the caller wrote itself. */
  skip(count: number): void {
    this.#count += count
  }

  /**
   * The text of the events that `write` adds.
   * @throws BrokenStream from `write`, with the events that it had added before
   */
  during(write: () => void): string {
    return this.#events.during(write)
  }

  /** The text of all events since the last call. */
  take(): string {
    return this.#events.take()
  }
}
