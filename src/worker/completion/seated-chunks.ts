import type { OwnSignal } from '../calls/own-signal.ts'
import type { Seat } from '../chunks/seat.ts'
import type { ChunkSource } from './chunk-source.ts'
import type { ClientEnd } from './open-stream.ts'
import { SeatedClient } from './seated-client.ts'

const NOTHING = new Uint8Array(0)

const cutOff = () => new Error('the chunks did not all come to the client')

/** Chunks that the daemon sends to a seat of the isolate's connection for chunks. */
export class SeatedChunks implements ChunkSource {
  readonly #seat: Seat

  /** @param call its abort ends the call, and with it the chunks */
  constructor(seat: Seat, call: OwnSignal) {
    this.#seat = seat
    if (call.aborted) seat.cut()
    else call.onAbort(() => seat.cut())
  }

  record(): Promise<string | undefined> {
    return this.#seat.lastRecord()
  }

  async begin(): Promise<boolean> {
    const hasBegun = await this.#seat.begun
    if (!hasBegun && this.#seat.record === undefined) throw cutOff()
    return hasBegun
  }

  pumped(onDisconnect: () => void): Promise<SeatedClient> {
    return SeatedClient.open(this.#seat, onDisconnect)
  }

  async passTo(client: ClientEnd): Promise<void> {
    if (client.seesBytes) return client.take(NOTHING, await this.#seat.openToRead())
    if ((await this.#seat.over) !== 'taken') throw cutOff()
  }

  /** To be called when the chunks come in another way, or not at all. */
  leave(): void {
    this.#seat.cut()
  }
}
