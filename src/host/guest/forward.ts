import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * Hands TCP connections from a port of all addresses to one on loopback, bytes as they are: TLS ends behind it. An end
 * of one direction is passed on by itself; a broken side breaks the other.
 */
export function forward(from: number, to: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (outer) => {
    join(outer, connect({ port: to, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }))
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(from, '0.0.0.0', () => resolve(server))
  })
}

function join(outer: Socket, inner: Socket): void {
  for (const [one, other] of [
    [outer, inner],
    [inner, outer],
  ] as const) {
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
    one.pipe(other)
  }
}
