import { connect, type LookupFunction, type Socket } from 'node:net'
import { established, type ConnectTime } from './established.ts'
import { sharedLookup } from './shared-lookup.ts'
import { takenBy, type TakeBytes } from './taken-reads.ts'

export interface TcpTarget extends ConnectTime {
  readonly host: string
  readonly port: number
  /** Absent: any address is allowed. */
  readonly lookup?: LookupFunction
}

/**
 * Opens a connection without TLS; nothing is sent.
 * @param take receives what is read, instead of the socket's own stream
 * @throws ConnectFailure when no connection is established in time
 */
export function connectTcp(target: TcpTarget, take?: TakeBytes): Promise<Socket> {
  const { host, port, lookup = sharedLookup } = target
  const socket: Socket = connect({
    host,
    port,
    lookup,
    ...takenBy(take, () => socket),
  })
  return established(socket, 'connect', target)
}
