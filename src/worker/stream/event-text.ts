import { utf8 } from '../../protocol/bytes.ts'
import { BrokenStream } from './broken-stream.ts'

/** Collects the server-sent events of one step of an encoder. */
export class EventText {
  #text = ''

  /** Adds a named event; its data repeats the name as `type`. */
  add(type: string, members: object): void {
    this.#text += `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
  }

  /** Adds events that are already encoded. */
  append(events: string): void {
    this.#text += events
  }

  /**
   * The text of the events that `write` adds.
   * @throws BrokenStream that `write` threw, with the events that it had added
   */
  during(write: () => void): string {
    try {
      write()
    } catch (error) {
      throw error instanceof BrokenStream ? error.after(utf8(this.take())) : error
    }
    return this.take()
  }

  /** The text of all events since the last call. */
  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }
}
