import { connect, type Socket } from 'node:net'
import { startDeadline, type DeadlineTimer } from '../../worker/batching/deadline-timer.ts'
import type { Connection } from './connection-table.ts'
import { relayOpening, type HandshakeEvents } from './opening-handshake.ts'

/** Where the bytes of a connection go, and from which address. */
export interface RelayTarget {
  readonly port: number
  readonly localAddress: string
}

export interface RelayEvents {
  readonly refused: () => void
  /** The client did not take what waits for it, and is disconnected. */
  readonly unread: () => void
  /** Of a client that speaks TLS. */
  readonly handshake?: HandshakeEvents | undefined
}

/** Time limits of a connection, ms. */
export interface ConnectionLimits {
  /** How long it may be idle once the worker or the client has ended it. */
  readonly lingerMs: number
  /**
   * How long the client may take for what waits for it here: 128 KiB at most. It may take more of what the kernel holds
   * before that, unseen from here. Behind it its provider, its reservation and its place among the open requests wait, too.
   */
  readonly unreadMs: number
}

/**
 * What was last read from any worker's connection. An answer comes in many reads, and without a buffer of its own each
 * would allocate one of this size.
 */
const READ_BUFFER = new Uint8Array(64 * 1024)

/** A client's connection, and the connection to the worker that is opened at its first bytes. */
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

  /** Passes on the client's first bytes and pauses it. Closes a connection that ends before it sends any. */
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
   * Connects to the worker and relays both ways, `first` before the rest. Calls `refused`, and leaves the client's
   * connection unchanged, when no worker listens on the port.
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
      // What waits for the client is not waited for again.
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
 * Relays bytes unchanged, in each direction no faster than they are read. The worker's end is passed on as an end, and a client
 * that does not take the rest of its answer, or does not end its side, is closed after a while, so that it cannot keep its place. The
 * client's end counts as leaving, as in nginx, Envoy and Node: no client of this API half-closes its connection and then
 * waits for the answer, and to one that has closed it the kernel sends nothing that tells the two apart. It is passed on
 * as a reset, because workerd notices a reset at once and an end only when it next writes; until then it would work for
 * a client that is gone. What the worker has written by then is still delivered.
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
