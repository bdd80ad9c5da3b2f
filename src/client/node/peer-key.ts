import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { ClientError } from '../errors.ts'

/**
 * SHA-256 over the SPKI in the peer's certificate on this connection, in hex.
 * @throws ClientError when the runtime does not expose the certificate (`unsupported_runtime`)
 * @throws Error when the peer presented none
 */
export function peerKeyOf(socket: Pick<TLSSocket, 'getPeerX509Certificate'>): string {
  const key = certificateOf(socket)?.publicKey.export({ type: 'spki', format: 'der' })
  if (key === undefined) throw new Error('the peer showed no certificate')
  return createHash('sha256').update(key).digest('hex')
}

function certificateOf(socket: Pick<TLSSocket, 'getPeerX509Certificate'>) {
  try {
    return socket.getPeerX509Certificate()
  } catch (cause) {
    const message = 'this runtime hides the key of a connection: use transport "ehbp"'
    throw new ClientError('unsupported_runtime', message, { cause })
  }
}
