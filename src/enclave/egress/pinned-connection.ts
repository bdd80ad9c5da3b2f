import { peerSpkiSha256 } from '../outbound/peer-key.ts'
import { connectTls, type TlsTarget } from '../outbound/tls-connect.ts'
import { connectDirect } from './direct-socket.ts'
import { ProviderConnection } from './provider-connection.ts'

/** The peer holds another key than the one that the evidence binds. Nothing was sent. */
export class PinMismatch extends Error {
  constructor() {
    super('the peer holds another key than its evidence vouches for')
    this.name = 'PinMismatch'
  }
}

/**
 * Opens a connection and compares its live key with the evidence.
 * @param origin scheme, host and port of the provider's address
 * @throws ConnectFailure when no connection is established in time
 * @throws PinMismatch when the peer holds another key
 */
export async function openPinnedConnection(
  origin: string,
  target: TlsTarget,
  spkiSha256: string,
): Promise<ProviderConnection> {
  const socket = await connectDirect((take) => connectTls(target, take))
  if ((await peerSpkiSha256(socket)) === spkiSha256) return ProviderConnection.over(origin, socket)
  socket.destroy()
  throw new PinMismatch()
}
