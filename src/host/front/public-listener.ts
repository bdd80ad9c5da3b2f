import { createServer, type Server, type Socket } from 'node:net'
import { ClientConnection, type ConnectionLimits } from './client-connection.ts'
import type { ConnectionTable } from './connection-table.ts'
import type { HandshakeEvents } from './opening-handshake.ts'
import { sourceOf, type SourceAddress } from './source-address.ts'

export interface ListenerDeps {
  readonly table: ConnectionTable<ClientConnection>
  /** Whole seconds. */
  readonly now: () => number
  readonly sourceAddress: SourceAddress
  readonly times: ConnectionLimits
  /** Called for each client that is disconnected because it does not read. */
  readonly unread: () => void
}

/** The pause before waiting connections are offered to a worker again after it refused one, ms. */
const RETRY_DELAY_MS = 100

/** Length of the listen queue; the kernel reduces it to its own limit. */
const BACKLOG = 4_096

/** One public socket: accepts connections, and relays those that send bytes to the worker. */
export class PublicListener {
  readonly #tools: ListenerDeps
  readonly #secure: boolean
  readonly #server: Server
  /** Connections that wait for a worker, with the bytes they have sent. */
  readonly #waiting = new Map<ClientConnection, Buffer>()
  /**
   * Connections whose handshake one worker left unanswered. If a second worker does so, too, the client's bytes may be
   * the cause, and the connection is closed.
   */
  readonly #deserted = new WeakSet<ClientConnection>()
  /**
   * One timer for all waiting connections: a timer per connection would each time offer all of them, and set further
   * timers.
   */
  #retry: NodeJS.Timeout | undefined
  #port: number | undefined

  /** @param secure whether clients speak TLS on it */
  constructor(tools: ListenerDeps, secure: boolean) {
    this.#tools = tools
    this.#secure = secure
    const options = { allowHalfOpen: true, noDelay: true, keepAlive: true }
    this.#server = createServer(options, (socket) => this.#enter(socket))
  }

  /**
   * Opens the socket.
   * @returns its port
   * @throws Error when the address cannot be opened; it is the system's error
   */
  listen(host: string, port: number, reusePort: boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, reusePort, backlog: BACKLOG }, () => {
        this.#server.off('error', reject)
        // An error while accepting concerns that one connection only.
        this.#server.on('error', ignoreBroken)
        const address = this.#server.address()
        resolve(typeof address === 'object' ? (address?.port ?? 0) : 0)
      })
    })
  }

  /** Relays to this loopback port from now on, waiting connections first; undefined: connections wait. */
  relayTo(port: number | undefined): void {
    this.#port = port
    this.#retryOffer()
  }

  #enter(socket: Socket): void {
    const { table, now, times } = this.#tools
    socket.on('error', ignoreBroken)
    const { remoteAddress } = socket
    const connection = new ClientConnection(socket, sourceOf(remoteAddress ?? ''), now(), times)
    if (remoteAddress === undefined || !table.add(connection)) {
      socket.destroy()
      return
    }
    socket.once('close', () => {
      table.remove(connection)
      this.#waiting.delete(connection)
    })
    connection.onFirstBytes((first) => this.#offer(connection, first))
  }

  #offer(connection: ClientConnection, first: Buffer): void {
    if (this.#port === undefined) this.#waiting.set(connection, first)
    else this.#relay(connection, first, this.#port)
  }

  #relay(connection: ClientConnection, first: Buffer, port: number): void {
    const { table, sourceAddress, unread } = this.#tools
    if (!table.move(connection, this.#secure ? 'handshaking' : 'established')) {
      connection.socket.resetAndDestroy()
      return
    }
    const target = { port, localAddress: sourceAddress(connection.source) }
    connection.relay(target, first, {
      unread,
      refused: () => {
        // The client may have disconnected in the meantime.
        if (connection.socket.destroyed) return
        // The worker has just died; `relayTo` will name the port of its replacement.
        table.move(connection, 'held')
        this.#waiting.set(connection, first)
        this.#retry ??= setTimeout(() => this.#retryOffer(), RETRY_DELAY_MS)
      },
      handshake: this.#secure ? this.#handshakeOf(connection) : undefined,
    })
  }

  #handshakeOf(connection: ClientConnection): HandshakeEvents {
    const { table } = this.#tools
    return {
      finished: () => void table.move(connection, 'established'),
      unanswered: (sent) => {
        if (this.#deserted.has(connection)) {
          connection.close()
          return
        }
        this.#deserted.add(connection)
        table.move(connection, 'held')
        this.#offer(connection, sent)
      },
    }
  }

  #retryOffer(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const [connection, first] of all) this.#offer(connection, first)
  }
}

function ignoreBroken(): void {
  // The socket emits `close` next, which removes the connection from the table.
}
