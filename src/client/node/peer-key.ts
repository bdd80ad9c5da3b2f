import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

/**
 * SHA-256 over the SPKI in the peer's certificate on this connection, in hex.
 * @throws Error when the peer presented none
 */
export function peerKeyOf(socket: TLSSocket): string {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  if (key === undefined) throw new Error('the peer showed no certificate')
  return createHash('sha256').update(key).digest('hex')
}
