import { Agent } from 'node:https'
import type { AgentOptions, RequestOptions } from 'node:https'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { callbackify } from 'node:util'
import { peerSpkiSha256 } from '../outbound/peer-key.ts'
import { connectTls, type TlsTarget } from '../outbound/tls-connect.ts'

/** The peer holds another key than the evidence binds. Nothing was sent. */
export class PinMismatch extends Error {
  constructor() {
    super('the peer holds another key than its evidence vouches for')
    this.name = 'PinMismatch'
  }
}

const OPTIONS: AgentOptions = {
  keepAlive: true,
  maxFreeSockets: 64,
  scheduling: 'lifo',
  /** Shorter than most servers' idle timeout, so that few connections are closed while a request is on its way. */
  timeout: 30_000,
}

/**
 * Connections to one provider under one proof. A connection joins the pool only after its live key was compared
 * with the evidence; requests get no other connections.
 */
export class PinnedAgent extends Agent {
  readonly #target: TlsTarget
  readonly #spkiSha256: string

  constructor(target: TlsTarget, spkiSha256: string) {
    super(OPTIONS)
    this.#target = target
    this.#spkiSha256 = spkiSha256
  }

  override createConnection(
    _options: RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    callbackify(() => this.#open())((error, socket) => callback?.(error, socket))
  }

  async #open(): Promise<TLSSocket> {
    const socket = await connectTls(this.#target)
    if ((await peerSpkiSha256(socket)) === this.#spkiSha256) return socket
    socket.destroy()
    throw new PinMismatch()
  }

  /** All connections are alike here; the name that Node composes of every option costs more than the look-up. */
  override getName(): string {
    return 'provider'
  }

  /** Closes idle connections now, and those in use once they are idle. */
  retire(): void {
    this.maxFreeSockets = 0
    for (const sockets of Object.values(this.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy()
    }
  }
}
