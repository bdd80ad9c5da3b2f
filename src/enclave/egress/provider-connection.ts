import type { Socket } from 'node:net'
import type { Client } from 'undici'
import type { PausableSource } from './chunk-joiner.ts'
import type { Exchange, ProviderRequest } from './exchange.ts'

/**
 * Shorter than most servers' idle timeout, so that a server rarely closes a connection while a request is on its way.
 */
const IDLE_MS = 30_000

/** One connection to a provider. It carries one exchange at a time, and is never reopened. */
export class ProviderConnection implements PausableSource {
  readonly #socket: Socket
  readonly #client: Client

  /**
   * Makes a connection for exchanges over an open socket.
   * @param origin scheme, host and port of the provider's address
   * @param socket a connection to it on which nothing was sent
   */
  static async over(origin: string, socket: Socket): Promise<ProviderConnection> {
    // Loaded with the first connection, because it takes 16 MiB.
    const { default: UndiciClient } = await import('undici/lib/dispatcher/client.js')
    return new ProviderConnection(UndiciClient, origin, socket)
  }

  private constructor(UndiciClient: typeof Client, origin: string, socket: Socket) {
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
      // The worker enforces the time limits of each call.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    socket.once('close', () => void this.#client.destroy())
  }

  /** Whether it can carry another exchange. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Sends a request; everything that is received in reply is reported to the exchange. */
  send(request: ProviderRequest, exchange: Exchange): void {
    this.#client.dispatch(request, exchange)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
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
