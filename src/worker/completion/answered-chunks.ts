import type { ChunkSource } from './chunk-source.ts'
import type { ClientEnd } from './open-stream.ts'
import { PumpedClient } from './pumped-client.ts'

/** Chunks that the daemon sends in the body of its answer to the call. The call's signal ends them. */
export class AnsweredChunks implements ChunkSource {
  readonly #body: ReadableStream<Uint8Array>
  #head: Uint8Array = new Uint8Array(0)

  constructor(body: ReadableStream<Uint8Array>) {
    this.#body = body
  }

  async record(): Promise<undefined> {}

  async begin(): Promise<boolean> {
    const reader = this.#body.getReader()
    const { value } = await reader.read()
    if (value === undefined) return false
    reader.releaseLock()
    this.#head = value
    return true
  }

  async pumped(onDisconnect: () => void): Promise<PumpedClient> {
    return new PumpedClient(onDisconnect)
  }

  passTo(client: ClientEnd): Promise<void> {
    return client.take(this.#head, this.#body)
  }
}
