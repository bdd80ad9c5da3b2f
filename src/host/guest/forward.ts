import { connect, createServer, type Server, type Socket } from 'node:net'
import { makeSourceAddress, sourceOf } from '../front/source-address.ts'

/**
 * Forwards TCP connections from a port on all addresses to one on loopback, unchanged: TLS ends in the router. The end
 * of one direction is passed on alone; an error or a close on one side closes the other. The router can still
 * distinguish clients, by their loopback address.
 */
export function forward(from: number, to: number): Promise<Server> {
  const addressOf = makeSourceAddress()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (outer) => {
    const localAddress = addressOf(sourceOf(outer.remoteAddress ?? ''))
    const target = { port: to, host: '127.0.0.1', localAddress }
    join(outer, connect({ ...target, allowHalfOpen: true, noDelay: true }))
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
