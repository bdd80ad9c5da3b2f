import type { TLSSocket } from 'node:tls'
import type { Client } from 'undici'
import { peerSpkiSha256 } from '../outbound/peer-key.ts'
import type { TlsTarget } from '../outbound/tls-connect.ts'
import type { RestingSource } from './chunk-joiner.ts'
import type { Exchange, ProviderRequest } from './exchange.ts'
import { connectDirect } from './direct-socket.ts'

/** The peer holds another key than the evidence binds. Nothing was sent. */
export class PinMismatch extends Error {
  constructor() {
    super('the peer holds another key than its evidence vouches for')
    this.name = 'PinMismatch'
  }
}

/** Shorter than most servers' idle timeout, so that few connections are closed while a request is on its way. */
const IDLE_MS = 30_000

/** One connection whose live key was compared with the evidence. It carries one exchange at a time, and is never reopened. */
export class PinnedConnection implements RestingSource {
  readonly #socket: TLSSocket
  readonly #client: Client

  /**
   * @param origin scheme, host and port of the provider's address
   * @throws ConnectFailure when no connection is established in time
   * @throws PinMismatch when the peer holds another key
   */
  static async open(
    origin: string,
    target: TlsTarget,
    spkiSha256: string,
  ): Promise<PinnedConnection> {
    const socket = await connectDirect(target)
    if ((await peerSpkiSha256(socket)) === spkiSha256) {
      // Loaded with the first connection: without an attested provider its 16 MiB are never needed.
      const { default: UndiciClient } = await import('undici/lib/dispatcher/client.js')
      return new PinnedConnection(UndiciClient, origin, socket)
    }
    socket.destroy()
    throw new PinMismatch()
  }

  private constructor(UndiciClient: typeof Client, origin: string, socket: TLSSocket) {
    this.#socket = socket
    const unused = [socket]
    this.#client = new UndiciClient(origin, {
      connect: (_options, callback) => {
        const opened = unused.pop()
        queueMicrotask(() => {
          if (opened === undefined) callback(new Error('the connection is closed'), null)
          else callback(null, opened)
        })
      },
      allowH2: false,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      // The worker keeps the time of each call.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    socket.once('close', () => void this.#client.destroy())
  }

  /** Whether it can carry another exchange. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Sends a request; the exchange gets everything that comes of it. */
  send(request: ProviderRequest, exchange: Exchange): void {
    this.#client.dispatch(request, exchange)
  }

  rest(): void {
    this.#socket.pause()
  }

  wake(): void {
    if (this.isOpen) this.#socket.resume()
  }

  /** Calls `work` when the connection is closed. */
  onClose(work: () => void): void {
    this.#socket.once('close', work)
  }

  close(): void {
    this.#socket.destroy()
  }
}
