import { connect, createServer, type Socket } from 'node:net'
import { listen } from './listen.ts'

/** A plain TCP balancer: each connection goes to the next backend that takes it. */
export interface TcpBalancer {
  readonly port: number
  /** How many connections are open to each backend, by its port. */
  open(): ReadonlyMap<number, number>
  close(): void
}

/** @param from the loopback address that backends see as the source of every connection */
export async function startTcpBalancer(
  backends: readonly number[],
  from = '127.0.0.1',
): Promise<TcpBalancer> {
  const open = new Map(backends.map((port) => [port, 0]))
  const sockets = new Set<Socket>()
  let turn = 0

  const join = (client: Socket, server: Socket, port: number) => {
    open.set(port, (open.get(port) ?? 0) + 1)
    server.once('close', () => open.set(port, (open.get(port) ?? 1) - 1))
    client.pipe(server).pipe(client)
    server.on('close', () => client.destroy())
    client.on('close', () => server.destroy())
    client.on('error', () => server.destroy())
  }

  const tryBackends = (client: Socket, candidates: readonly number[]) => {
    const [port, ...others] = candidates
    if (port === undefined) {
      client.destroy()
      return
    }
    const server = connect({ host: '127.0.0.1', port, localAddress: from })
    sockets.add(server)
    const next = () => tryBackends(client, others)
    server.once('error', next)
    server.once('connect', () => {
      server.off('error', next)
      server.on('error', () => client.destroy())
      join(client, server, port)
    })
  }

  const balancer = createServer((client) => {
    sockets.add(client)
    client.on('error', () => client.destroy())
    const first = turn++ % backends.length
    tryBackends(client, [...backends.slice(first), ...backends.slice(0, first)])
  })
  const port = await listen(balancer)
  return {
    port,
    open: () => open,
    close: () => {
      for (const socket of sockets) socket.destroy()
      balancer.close()
    },
  }
}
