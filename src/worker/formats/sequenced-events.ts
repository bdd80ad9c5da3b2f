import { EventText } from '../stream/event-text.ts'

/** Collects server-sent events that are numbered from 0 over the whole stream. */
export class SequencedEvents {
  readonly #events = new EventText()
  #count: number

  /** @param count how many events precede */
  constructor(count = 0) {
    this.#count = count
  }

  /** How many events there were. */
  get count(): number {
    return this.#count
  }

  /** Adds a named event with the next number. */
  add(type: string, members: object): void {
    this.#events.add(type, { sequence_number: this.next(), ...members })
  }

  /** The number of an event that is written elsewhere. */
  next(): number {
    return this.#count++
  }

  /** Leaves out the numbers of events that were written elsewhere. */
  skip(count: number): void {
    this.#count += count
  }

  /**
   * The text of the events that `write` adds.
   * @throws BrokenStream that `write` threw, with the events that it had added
   */
  during(write: () => void): string {
    return this.#events.during(write)
  }

  /** The text of all events since the last call. */
  take(): string {
    return this.#events.take()
  }
}
