import { isIP, type LookupFunction } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { peerAddress, type PeerAddress } from '../../protocol/peer-address.ts'
import { established, type ConnectTime } from './established.ts'
import { sharedLookup } from './shared-lookup.ts'
import { takenBy, type TakeBytes } from './taken-reads.ts'

export interface TlsTarget extends ConnectTime {
  readonly host: string
  readonly port: number
  /** Whether to require a certificate that browsers accept, in addition to the key that the caller may compare. */
  readonly webPki: boolean
  /** Whether to accept TLS 1.2, too. */
  readonly oldTls?: boolean
  /** Absent: any address is allowed. */
  readonly lookup?: LookupFunction
}

/**
 * Opens a TLS connection and completes its handshake; nothing is sent. There is no session resumption: the peer shows
 * its certificate on every connection, and in TLS 1.3 cannot change it later.
 * @param take receives what is read, instead of the socket's own stream
 * @throws ConnectFailure when no connection is established in time
 */
export function connectTls(target: TlsTarget, take?: TakeBytes): Promise<TLSSocket> {
  const { host, port, webPki, oldTls = false, lookup = sharedLookup } = target
  const socket: TLSSocket = connect({
    host,
    port,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    lookup,
    minVersion: oldTls ? 'TLSv1.2' : 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: webPki,
    ...takenBy(take, () => socket),
  })
  return established(socket, 'secureConnect', target)
}

/** Local hosts and IP addresses cannot have certificates that browsers accept. */
const PRIVATE_HOST = /(^|\.)localhost$/

export function hasPublicName(host: string): boolean {
  return isIP(host) === 0 && !PRIVATE_HOST.test(host)
}

/** Host and port of an https address, in the form that `connect` takes. Undefined for any other address. */
export function tlsAddress(url: string): Omit<PeerAddress, 'isTls'> | undefined {
  const { isTls, ...address } = peerAddress(url)
  return isTls ? address : undefined
}
