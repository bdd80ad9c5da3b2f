import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'

/**
 * Keeps at most `max` connections of a server whose handshake is not finished: a new one closes the oldest of them. Any
 * process of the host can open connections and send nothing; a worker has finished its handshake long before so many others
 * have come.
 */
export function capHandshakes(server: Server, max: number): void {
  /** By the client's address, in order of arrival: the socket of the TLS connection is another than that of its bytes. */
  const unfinished = new Map<string, Socket>()
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket)
    unfinished.set(client, socket)
    socket.once('close', () => {
      if (unfinished.get(client) === socket) unfinished.delete(client)
    })
    if (unfinished.size > max) closeOldest(unfinished)
  })
  server.on('secureConnection', (socket: TLSSocket) => unfinished.delete(clientOf(socket)))
}

function closeOldest(unfinished: Map<string, Socket>): void {
  const [oldest] = unfinished
  if (oldest === undefined) return
  const [client, socket] = oldest
  unfinished.delete(client)
  socket.destroy()
}

const clientOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
