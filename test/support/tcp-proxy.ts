import { connect, createServer, type Server, type Socket } from 'node:net'
import { listen } from './listen.ts'

/** A way to a server that a test can take away and give back. */
export interface TcpProxy {
  readonly port: number
  /** Ends every connection and takes no new one. */
  cut(): Promise<void>
  /** Takes connections again. */
  heal(): Promise<void>
  close(): Promise<void>
}

/** Passes connections on to a port of loopback. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket, other: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      other.destroy()
    })
  }
  const server: Server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    keep(client, upstream)
    keep(upstream, client)
    client.pipe(upstream).pipe(client)
  })
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  const port = await listen(server)
  return {
    port,
    cut,
    heal: () => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve)),
    close: cut,
  }
}
