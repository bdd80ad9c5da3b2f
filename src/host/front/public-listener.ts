import { createServer, type Server, type Socket } from 'node:net'
import { ClientConnection, type ConnectionLimits } from './client-connection.ts'
import type { ConnectionTable } from './connection-table.ts'
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

/** A connection that has sent bytes and waits for a worker. */
interface Waiting {
  readonly connection: ClientConnection
  readonly first: Buffer
}

/** The pause before waiting connections are offered to a worker again after it refused one. */
const RETRY_DELAY_MS = 100

/** The kernel reduces it to its own limit. */
const BACKLOG = 4_096

/** One public socket: accepts connections, and relays those that send bytes to the worker. */
export class PublicListener {
  readonly #tools: ListenerDeps
  readonly #secure: boolean
  readonly #server: Server
  readonly #waiting = new Set<Waiting>()
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

  /** Relays to this loopback port from now on, waiting connections first. Undefined: connections wait. */
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
    socket.once('close', () => table.remove(connection))
    connection.onFirstBytes((first) => this.#offer({ connection, first }))
  }

  #offer(waiting: Waiting): void {
    if (this.#port === undefined) this.#wait(waiting)
    else this.#relay(waiting, this.#port)
  }

  #relay(waiting: Waiting, port: number): void {
    const { connection, first } = waiting
    const { table, sourceAddress, unread } = this.#tools
    if (!table.move(connection, this.#secure ? 'handshaking' : 'established')) {
      connection.socket.resetAndDestroy()
      return
    }
    const target = { port, localAddress: sourceAddress(connection.source) }
    connection.relay(target, first, {
      connected: () => {
        if (this.#secure)
          connection.onHandshakeEnd(first, () => table.move(connection, 'established'))
      },
      unread,
      refused: () => {
        // The worker has just died; `relayTo` will name the port of its replacement.
        table.move(connection, 'held')
        this.#wait(waiting)
        setTimeout(() => this.#retryOffer(), RETRY_DELAY_MS)
      },
    })
  }

  #wait(waiting: Waiting): void {
    this.#waiting.add(waiting)
    waiting.connection.socket.once('close', () => this.#waiting.delete(waiting))
  }

  #retryOffer(): void {
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const waiting of all) this.#offer(waiting)
  }
}

function ignoreBroken(): void {
  // The socket emits `close` next, which removes the connection from the table.
}
