import { connect, type Socket } from 'node:net'
import type { Connection } from './connection-table.ts'
import { HandshakeWatch } from './handshake-watch.ts'

/** Where the bytes of a connection go, and from which address. */
export interface RelayTarget {
  readonly port: number
  readonly localAddress: string
}

export interface RelayEvents {
  readonly connected: () => void
  readonly refused: () => void
}

/** A client's connection and, from its first bytes on, the one to the worker behind it. */
export class ClientConnection implements Connection {
  readonly source: string
  readonly cameAt: number
  readonly socket: Socket

  constructor(socket: Socket, source: string, cameAt: number) {
    this.socket = socket
    this.source = source
    this.cameAt = cameAt
  }

  /** Tells the client's first bytes, and leaves it paused then. One that goes without a word is closed. */
  onceHeard(heard: (first: Buffer) => void): void {
    const { socket } = this
    const leave = () => socket.destroy()
    socket.once('end', leave)
    socket.once('data', (first: Buffer) => {
      socket.off('end', leave)
      socket.pause()
      heard(first)
    })
  }

  /**
   * Connects to the worker and hands everything over, `first` before the rest. `refused` is told, with the client left
   * as it was, when nobody listens there.
   */
  relay(
    { port, localAddress }: RelayTarget,
    first: Buffer,
    { connected, refused }: RelayEvents,
  ): void {
    const client = this.socket
    const worker = connect({
      port,
      host: '127.0.0.1',
      localAddress,
      allowHalfOpen: true,
      noDelay: true,
    })
    const abandon = () => worker.destroy()
    const neverStood = () => {
      client.off('close', abandon)
      refused()
    }
    worker.once('error', neverStood)
    client.once('close', abandon)
    worker.once('connect', () => {
      worker.off('error', neverStood)
      client.off('close', abandon)
      connected()
      worker.write(first)
      join(client, worker)
    })
  }

  /** Tells when the client has ended its TLS handshake, of which these were the first bytes. */
  onceSecure(first: Buffer, secure: () => void): void {
    const watch = new HandshakeWatch()
    const look = (bytes: Buffer) => {
      if (!watch.take(bytes)) return
      this.socket.off('data', look)
      secure()
    }
    if (watch.take(first)) secure()
    else this.socket.on('data', look)
  }

  close(): void {
    this.socket.destroy()
  }
}

/**
 * Bytes as they are, each way no faster than they are read. An end of one direction is passed on by itself, a broken
 * side breaks the other: workerd notices a reset at once, and an end only when it next writes.
 */
function join(client: Socket, worker: Socket): void {
  for (const [one, other] of [
    [client, worker],
    [worker, client],
  ] as const) {
    one.once('error', () => other.resetAndDestroy())
    one.once('close', () => other.destroy())
    one.pipe(other)
  }
}
