import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { DaemonTls } from '../../src/protocol/boot.ts'
import { makeTlsIdentity } from '../../src/enclave/keys/tls-identity.ts'
import { listen } from './listen.ts'

export type Respond = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** A provider on loopback that keeps every byte it is sent, as it comes out of TLS. */
export interface RecordingProvider {
  readonly origin: string
  readonly port: number
  readonly tls: DaemonTls
  /** Everything received so far, of all connections. */
  received(): string
  connections(): number
  /** Serves with another key from the next connection on. */
  changeKey(tls: DaemonTls): void
  /** Ends every connection. Resolves once the clients have ended theirs too. */
  cut(): Promise<void>
  close(): Promise<void>
}

export async function startRecordingProvider(
  respond: Respond,
  given?: DaemonTls,
): Promise<RecordingProvider> {
  const tls = given ?? (await makeTlsIdentity([], new Date()))
  const parts: Buffer[] = []
  const sockets = new Set<TLSSocket>()
  const server: Server = createServer(
    { cert: tls.certPem, key: tls.keyPem },
    (request, response) => {
      void Promise.resolve(respond(request, response)).catch(() => response.destroy())
    },
  )
  let connections = 0
  server.on('secureConnection', (socket: TLSSocket) => {
    connections++
    sockets.add(socket)
    socket.on('data', (part: Buffer) => parts.push(part))
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  const port = await listen(server)
  return {
    origin: `https://127.0.0.1:${port}`,
    port,
    tls,
    received: () => Buffer.concat(parts).toString('latin1'),
    connections: () => connections,
    changeKey: ({ certPem: cert, keyPem: key }) => server.setSecureContext({ cert, key }),
    cut: async () => {
      const ended = [...sockets].map((socket) => once(socket, 'close'))
      // The client's own end follows when it has seen this one.
      for (const socket of sockets) socket.end()
      await Promise.all(ended)
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
