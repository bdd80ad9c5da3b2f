import {
  createServer as createHttpServer,
  type ServerResponse,
  type IncomingMessage,
} from 'node:http'
import { createServer as createHttpsServer, Server as HttpsServer } from 'node:https'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { z } from 'zod'

/**
 * The thread behind a `ListeningSocket`. It opens the socket and then blocks, so that it accepts nothing: the
 * kernel queues connections for the processes that inherited the descriptor. Once it is let go it answers every
 * request with 503 itself.
 */

const plan = z
  .object({
    host: z.string(),
    port: z.int(),
    secure: z.boolean(),
    shared: z.boolean(),
    gate: z.instanceof(SharedArrayBuffer),
    retryAfterSeconds: z.int(),
  })
  .parse(workerData)

const farewellSchema = z.object({
  message: z.object({ tls: z.object({ keyPem: z.string(), certPem: z.string() }).nullable() }),
})

const handleSchema = z.object({ _handle: z.object({ fd: z.int().min(0) }) })

function tell(
  message: { readonly fd: number; readonly port: number | undefined } | { readonly error: string },
): void {
  // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message)
}

const UNAVAILABLE = JSON.stringify({
  error: {
    message: 'This instance is shutting down; try again.',
    type: 'server_error',
    code: 'service_unavailable',
    param: null,
  },
})

function refuse(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, {
    'content-type': 'application/json',
    'retry-after': String(plan.retryAfterSeconds),
    'access-control-allow-origin': '*',
    connection: 'close',
  })
  response.end(UNAVAILABLE)
}

const server = plan.secure ? createHttpsServer(refuse) : createHttpServer(refuse)
server.once('error', (error) => {
  tell({ error: 'code' in error ? String(error.code) : error.message })
})
server.listen({ host: plan.host, port: plan.port, reusePort: plan.shared }, () => {
  const address = server.address()
  const { _handle: handle } = handleSchema.parse(server)
  tell({ fd: handle.fd, port: typeof address === 'object' ? address?.port : undefined })
  // From here on the event loop stands still, and with it `accept`.
  Atomics.wait(new Int32Array(plan.gate), 0, 0)
  const { tls } = farewellSchema.parse(parentPort && receiveMessageOnPort(parentPort)).message
  if (tls !== null && server instanceof HttpsServer) {
    server.setSecureContext({ key: tls.keyPem, cert: tls.certPem, minVersion: 'TLSv1.2' })
  }
})
