import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'

/**
 * Limits the connections of a server whose TLS handshake is unfinished to `max`: a new one closes the oldest of them.
 * Any process on the host can open connections and send nothing; a worker finishes its handshake long before `max`
 * others have connected.
 */
export function capHandshakes(server: Server, max: number): void {
  /**
   * By the client's address, in order of arrival. Not by socket, because the TLS socket is another object than the TCP
   * socket below it.
   */
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
