import { concatBytes } from '../../protocol/bytes.ts'
import type { Seat } from '../chunks/seat.ts'
import { END_OF_EVENT } from '../stream/event-boundary.ts'
import type { PumpedEnd } from './open-stream.ts'

/** The client's end of a stream whose chunks arrive at a seat, from which the runtime moves them. */
export class SeatedClient implements PumpedEnd {
  readonly seesBytes = false
  readonly readable: ReadableStream<Uint8Array>
  readonly #seat: Seat
  /** Whether the chunks were cut, perhaps in the middle of an event. */
  #cutOff = false

  /** @param onDisconnect called when the client has disconnected */
  static async open(seat: Seat, onDisconnect: () => void): Promise<SeatedClient> {
    return new SeatedClient(seat, await seat.openForClient(), onDisconnect)
  }

  private constructor(seat: Seat, readable: ReadableStream<Uint8Array>, onDisconnect: () => void) {
    this.#seat = seat
    this.readable = readable
    void this.#watchEnd(onDisconnect)
  }

  async #watchEnd(onDisconnect: () => void): Promise<void> {
    const end = await this.#seat.over
    this.#cutOff = end === 'cut'
    if (end === 'left') onDisconnect()
  }

  take(): Promise<void> {
    throw new Error('internal error: chunks that do not come to the seat')
  }

  async send(events: Uint8Array): Promise<void> {
    if (!(await this.#seat.send(events))) throw new Error('the client has left')
  }

  seal(): Promise<string> {
    throw new Error('internal error: bytes that were not seen have no digest here')
  }

  async finish(last: Uint8Array): Promise<void> {
    // A client that has disconnected by now misses only these bytes; the settlement they report is stored already.
    await this.#seat.send(this.#cutOff ? concatBytes(END_OF_EVENT, last) : last)
    this.#seat.close()
  }

  /** Closes the connection of a client that does not read. */
  abandon(): void {
    this.#seat.leave()
  }
}
