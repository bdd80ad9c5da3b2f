import { connect, type Socket } from 'node:net'
import { startDeadline, type DeadlineTimer } from '../../worker/batching/deadline-timer.ts'
import type { Connection } from './connection-table.ts'
import { relayOpening, type HandshakeEvents } from './opening-handshake.ts'

/** The worker's port, and the local address to connect to it from. */
export interface RelayTarget {
  readonly port: number
  readonly localAddress: string
}

export interface RelayEvents {
  readonly refused: () => void
  /** Called when the client is disconnected because it did not read. */
  readonly unread: () => void
  /** Set for a client that speaks TLS. */
  readonly handshake?: HandshakeEvents | undefined
}

/** Time limits of a connection, ms. */
export interface ConnectionLimits {
  /** How long a connection may be idle once the worker or the client has ended its side. */
  readonly lingerMs: number
  /**
   * How long a client may leave data unread that waits here for it: 128 KiB at most. The kernel buffers more before
   * that, which is not visible here. While a client does not read, its provider, its reservation and its place among
   * the open requests are held up, too.
   */
  readonly unreadMs: number
}

/**
 * One read buffer for all connections to workers. An answer takes many reads, and without this buffer each of them
 * would allocate one of this size.
 */
const READ_BUFFER = new Uint8Array(64 * 1024)

/** A client's connection, and its connection to the worker, which is opened at the client's first bytes. */
export class ClientConnection implements Connection {
  readonly source: string
  readonly openedAt: number
  readonly socket: Socket
  readonly #limits: ConnectionLimits

  constructor(socket: Socket, source: string, openedAt: number, limits: ConnectionLimits) {
    this.socket = socket
    this.source = source
    this.openedAt = openedAt
    this.#limits = limits
  }

  /**
   * Passes the client's first bytes to `received` and pauses the connection. Closes a connection that ends before it
   * sends any.
   */
  onFirstBytes(received: (first: Buffer) => void): void {
    const { socket } = this
    const leave = () => socket.destroy()
    socket.once('end', leave)
    socket.once('data', (first: Buffer) => {
      socket.off('end', leave)
      socket.pause()
      received(first)
    })
  }

  /**
   * Connects to the worker and relays in both directions, starting with `first`. When no worker listens on the port,
   * calls `refused` and leaves the client's connection unchanged.
   */
  relay(
    { port, localAddress }: RelayTarget,
    first: Buffer,
    { refused, unread: gaveUp, handshake }: RelayEvents,
  ): void {
    const client = this.socket
    let answered: (() => void) | undefined
    let unread: DeadlineTimer | undefined
    const stopWaiting = () => {
      unread?.stop()
      unread = undefined
    }
    const giveUp = () => {
      gaveUp()
      worker.resetAndDestroy()
      // A reset discards the client's unread data instead of waiting for it once more.
      client.resetAndDestroy()
    }
    const worker = connect({
      port,
      host: '127.0.0.1',
      localAddress,
      allowHalfOpen: true,
      noDelay: true,
      onread: {
        buffer: READ_BUFFER,
        callback: (length, bytes) => {
          answered?.()
          if (client.write(Buffer.from(bytes.subarray(0, length)))) return true
          worker.pause()
          unread ??= startDeadline(this.#limits.unreadMs, performance.now.bind(performance), giveUp)
          return true
        },
      },
    })
    const abandon = () => worker.destroy()
    const connectFailed = () => {
      client.off('close', abandon)
      refused()
    }
    worker.once('error', connectFailed)
    client.once('close', abandon)
    worker.once('connect', () => {
      worker.off('error', connectFailed)
      client.off('close', abandon)
      worker.write(first)
      const relayAll = () => {
        answered = undefined
        client.on('drain', stopWaiting)
        client.once('close', stopWaiting)
        join(client, worker, this.#limits.lingerMs)
      }
      if (handshake === undefined) relayAll()
      else answered = relayOpening(client, worker, first, handshake, relayAll)
    })
  }

  close(): void {
    this.socket.destroy()
  }
}

/**
 * Relays bytes unchanged, with back-pressure in each direction. The worker's end is passed on as an end; a client that
 * then does not read the rest of its answer, or does not end its side, is closed after `lingerMs`, so that it cannot
 * keep its place.
 *
 * The client's end counts as a disconnect, as in nginx, Envoy and Node: no client of this API half-closes its
 * connection and then waits for the answer, and the kernel does not tell whether a client has half-closed or closed. It
 * is passed on as a reset, because workerd notices a reset at once and an end only when it next writes; until then it
 * would work for a client that is gone. What the worker has written by then is still delivered.
 */
function join(client: Socket, worker: Socket, lingerMs: number): void {
  const closeWhenIdle = () => client.setTimeout(lingerMs, () => client.destroy())
  client.once('error', () => worker.resetAndDestroy())
  client.once('end', () => {
    closeWhenIdle()
    worker.resetAndDestroy()
  })
  client.once('close', () => worker.destroy())
  worker.once('error', () => client.resetAndDestroy())
  worker.once('end', () => {
    closeWhenIdle()
    client.end()
  })
  worker.once('close', () => client.destroySoon())
  client.on('drain', () => worker.resume())
  client.pipe(worker, { end: false })
}
