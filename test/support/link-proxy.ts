import {
  createServer as createPlainServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer } from 'node:https'
import type { Server, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { hopByHop } from '../../src/protocol/hop-by-hop.ts'
import { createLinkBinding, type LinkEnd } from '../../src/host/stack/link-binding.ts'
import type { KeyPair } from '../../src/host/stack/link-certificates.ts'
import { proxyMessages, type PassedCall } from './link-proxy-messages.ts'
import { listen } from './listen.ts'

/** How a daemon can fail to answer. */
export type LinkFault =
  | 'silent'
  | 'slow'
  | 'reset'
  | 'garbage'
  | 'wrong form'
  | 'status 500'
  | 'cut'

/** A stand-in for the daemon's end of the link that passes everything on to the real one, or fails. */
export interface LinkProxy {
  readonly port: number
  /** What becomes of calls whose path begins so; null: nothing does. */
  fail(fault: { readonly path: string; readonly as: LinkFault } | null): void
  /** Whether the worker has a connection for messages. */
  takesMessages(): boolean
  /** Nothing listens any more. */
  stopListening(): Promise<void>
  /** Listens again, with its own certificate, with another one, or without TLS. */
  listenAgain(as: 'itself' | 'a stranger' | 'plain HTTP'): Promise<void>
  close(): Promise<void>
}

const SLOW_MS = 1_000

/** @param self what the worker has pinned @param stranger a certificate like it that nobody has pinned */
export async function startLinkProxy(
  daemon: LinkEnd,
  self: KeyPair,
  stranger: KeyPair,
): Promise<LinkProxy> {
  const binding = createLinkBinding(daemon, (body, { status, headers }) => {
    return { body, status, headers }
  })
  const sockets = new Set<Socket>()
  let fault: Parameters<LinkProxy['fail']>[0] = null
  const faultOf = (path: string) =>
    fault !== null && path.startsWith(fault.path) ? fault.as : undefined
  const pass = (method: string, { path, headers, body }: PassedCall) =>
    binding.fetch({
      url: `https://link${path}`,
      method,
      headers,
      arrayBuffer: async () => new Uint8Array(body).buffer,
    })

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    const kind = faultOf(path)
    if (kind !== undefined && kind !== 'slow') return FAULTS[kind](response)
    if (kind === 'slow') await delay(SLOW_MS)
    const body = Buffer.concat(await request.toArray())
    const headers = passedHeaders(request.headers)
    const answer = await pass(request.method ?? 'GET', { path, headers, body })
    response.writeHead(answer.status, answer.headers.flat())
    if (answer.body === null) response.end()
    else Readable.fromWeb(answer.body).pipe(response)
  }

  const handler = (request: IncomingMessage, response: ServerResponse) =>
    void serve(request, response).catch(() => response.destroy())
  const messages = {
    faultOf,
    slowMs: SLOW_MS,
    pass: async (call: PassedCall) => {
      const { status, headers, body } = await pass('POST', call)
      const bytes = Buffer.concat(body === null ? [] : await Readable.fromWeb(body).toArray())
      return { status, headers: Object.fromEntries(headers), body: bytes }
    },
  }
  let openConnections = () => 0
  const tls = ({ certPem, keyPem }: KeyPair) => {
    const made = createServer({ cert: certPem, key: keyPem, minVersion: 'TLSv1.3' }, handler)
    openConnections = proxyMessages(made, messages)
    return made
  }
  const kept = <Kind extends Server>(server: Kind): Kind => {
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => sockets.delete(socket))
    })
    return server
  }
  const makers = {
    itself: () => tls(self),
    'a stranger': () => tls(stranger),
    'plain HTTP': () => createPlainServer(handler),
  }

  let server: Server = kept(makers.itself())
  const port = await listen(server)
  const stopListening = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    port,
    fail: (next) => (fault = next),
    takesMessages: () => openConnections() > 0,
    stopListening,
    listenAgain: async (as) => {
      await stopListening()
      server = kept(makers[as]())
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    },
    close: async () => {
      await stopListening()
      await binding.close()
    },
  }
}

/** The headers that are not of this one connection. */
function passedHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const ofConnection = hopByHop(headers.connection)
  const passed = Object.entries(headers).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === 'string' &&
      !ofConnection(entry[0]) &&
      !['host', 'content-length'].includes(entry[0]),
  )
  return Object.fromEntries(passed)
}

const FAULTS: Readonly<Record<Exclude<LinkFault, 'slow'>, (response: ServerResponse) => void>> = {
  silent: () => {},
  reset: (response) => response.socket?.resetAndDestroy(),
  garbage: (response) => response.end('\u0000\u00ff not JSON'),
  'wrong form': (response) => response.end('{"generation": "first", "receipts": []}'),
  'status 500': (response) =>
    response.writeHead(500).end('{"error": {"code": "x", "message": "x"}}'),
  cut: (response) => {
    response.writeHead(200, { 'content-length': 1_000 })
    response.write('{"generation": 1, ')
    setTimeout(() => response.destroy(), 50)
  },
}
