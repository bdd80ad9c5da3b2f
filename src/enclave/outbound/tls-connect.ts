import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { StageClock } from '../../worker/stream/stage-clock.ts'
import { ConnectFailure, connectFailureKind, type ConnectFailureKind } from './connect-failure.ts'

export interface TlsTarget {
  readonly host: string
  readonly port: number
  /** Whether to require a certificate that browsers accept, in addition to the pinned key. */
  readonly webPki: boolean
  /** Timeout of TCP and TLS together, in time in which this process ran. */
  readonly connectMs: number
  /** Ms. */
  readonly now: () => number
}

/** Takes what was read, which is overwritten by the next read; false: no more for now. */
export type TakeBytes = (socket: TLSSocket, bytes: Uint8Array) => boolean

/** What was last read from a connection whose reads are not put into its stream: a buffer for each read would cost more. */
const READ_BUFFER = new Uint8Array(64 * 1024)

/**
 * Opens a TLS connection and completes its handshake; nothing is sent. TLS 1.3 only, without session resumption: the
 * peer shows its certificate on every connection and cannot change it later.
 * @param take is given what is read, in place of the socket's own stream
 * @throws ConnectFailure when no connection is established in time
 */
export function connectTls(target: TlsTarget, take?: TakeBytes): Promise<TLSSocket> {
  const { host, port, webPki, connectMs, now } = target
  return new Promise((resolve, reject) => {
    const callback = (length: number, buffer: Uint8Array) =>
      take?.(socket, buffer.subarray(0, length)) ?? true
    const socket: TLSSocket = connect({
      host,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: webPki,
      // Missing in the types of Node.
      ...(take && { onread: { buffer: READ_BUFFER, callback } }),
    })
    const fail = (kind: ConnectFailureKind, cause?: unknown) => {
      socket.destroy()
      reject(new ConnectFailure(kind, { cause }))
    }
    const clock = new StageClock(now, () => fail('timeout'))
    clock.enter(connectMs)
    const onError = (cause: NodeJS.ErrnoException) => {
      clock.stop()
      fail(connectFailureKind(cause), cause)
    }
    socket.once('error', onError)
    socket.once('secureConnect', () => {
      clock.stop()
      socket.off('error', onError)
      // While a request uses the socket it handles errors itself; between requests the socket's end is sufficient.
      socket.on('error', () => {})
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}

/** Local hosts and IP addresses cannot have certificates that browsers accept. */
const PRIVATE_HOST = /(^|\.)localhost$/

export function hasPublicName(host: string): boolean {
  return isIP(host) === 0 && !PRIVATE_HOST.test(host)
}

/** Host and port of an https address, as `connect` takes them. Undefined for any other address. */
export function tlsAddress(url: string): { host: string; port: number } | undefined {
  const { protocol, hostname, port } = new URL(url)
  if (protocol !== 'https:') return undefined
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 443 : Number(port),
  }
}
