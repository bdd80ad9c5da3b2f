import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Server } from 'node:net'
import type { TlsMaterial } from '../../protocol/boot.ts'
import { errorFormatAt, writeError } from '../../worker/http/error-format.ts'
import { ApiError } from '../../worker/http/errors.ts'

const UNAVAILABLE = new ApiError(
  'service_unavailable',
  'This instance is shutting down; try again.',
  { retryAfter: 5 },
)

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

function refuse({ url = '/' }: IncomingMessage, response: ServerResponse): void {
  const [path = '/'] = url.split('?', 1)
  const { status, body, headers } = writeError(UNAVAILABLE, errorFormatAt(path))
  response.writeHead(status, {
    'content-type': 'application/json',
    'access-control-allow-origin': '*',
    connection: 'close',
    ...headers,
  })
  response.end(JSON.stringify(body))
}
