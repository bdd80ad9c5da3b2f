import { connect, createServer, type Server, type Socket } from 'node:net'
import { listen } from './listen.ts'

/** A proxy to a server that a test can interrupt and restore. */
export interface TcpProxy {
  readonly port: number
  /** Everything that the server sends comes so many milliseconds later from now on. */
  delayAnswers(ms: number): void
  /** Ends every connection and accepts no new one. */
  cut(): Promise<void>
  /**
   * Nothing passes on the connections of this moment any more, and neither side learns that the other has gone: as where a host
   * loses its power, or a network an entry of its table.
   */
  freeze(): void
  /** Accepts connections again. */
  heal(): Promise<void>
  close(): Promise<void>
}

/** Passes connections on to a port of loopback. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const frozen = new WeakSet<Socket>()
  let answerDelayMs = 0
  const keep = (socket: Socket, other: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      if (!frozen.has(socket)) other.destroy()
    })
  }
  const server: Server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    keep(client, upstream)
    keep(upstream, client)
    client.pipe(upstream)
    upstream.on('data', (data: Buffer) => {
      if (frozen.has(upstream)) return
      if (answerDelayMs === 0) client.write(data)
      else setTimeout(() => client.write(data), answerDelayMs)
    })
    upstream.once('end', () => {
      if (!frozen.has(upstream)) client.end()
    })
  })
  const cut = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  const freeze = () => {
    for (const socket of sockets) {
      frozen.add(socket)
      socket.unpipe()
      socket.resume()
    }
  }
  const port = await listen(server)
  return {
    port,
    delayAnswers: (ms) => (answerDelayMs = ms),
    cut,
    freeze,
    heal: () => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve)),
    close: cut,
  }
}
