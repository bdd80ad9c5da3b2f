import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Server } from 'node:net'
import type { TlsMaterial } from '../../protocol/boot.ts'

/** `Retry-After` of an instance that is shutting down. */
const RETRY_AFTER_SECONDS = 5

const UNAVAILABLE = JSON.stringify({
  error: {
    message: 'This instance is shutting down; try again.',
    type: 'server_error',
    code: 'service_unavailable',
    param: null,
  },
})

/**
 * Opens a server on loopback that answers every request with 503, `Retry-After` and `Connection: close`.
 * @param tls key and certificate; undefined: plain HTTP
 * @returns its port
 */
export function openUnavailableServer(tls?: TlsMaterial): Promise<number> {
  const server: Server =
    tls === undefined
      ? createHttpServer(refuse)
      : createHttpsServer({ key: tls.keyPem, cert: tls.certPem, minVersion: 'TLSv1.2' }, refuse)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' ? (address?.port ?? 0) : 0)
    })
  })
}

function refuse(_request: unknown, response: ServerResponse): void {
  response.writeHead(503, {
    'content-type': 'application/json',
    'retry-after': String(RETRY_AFTER_SECONDS),
    'access-control-allow-origin': '*',
    connection: 'close',
  })
  response.end(UNAVAILABLE)
}
