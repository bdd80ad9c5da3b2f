import { createServer, type TLSSocket } from 'node:tls'
import { linkTls, listenForPeer, type LinkServer } from '../enclave/link/server.ts'
import type { LinkServerPlan } from '../protocol/boot.ts'
import { RequestReader, type LinkRequest, type ReaderLimits } from './request-reader.ts'

/** What a request is answered with. */
export interface LinkAnswer {
  readonly status: 200 | 400 | 404
  /** JSON. */
  readonly body?: Uint8Array
}

/** Answers a request. Where it rejects, the process must end. */
export type AnswerRequest = (request: LinkRequest) => Promise<LinkAnswer>

/** What a connection may take. */
export interface ListenerLimits extends ReaderLimits {
  /** Of its handshake, ms. */
  readonly maxHandshakeMs: number
}

const REASONS = { 200: 'OK', 400: 'Bad Request', 404: 'Not Found' } as const

const EMPTY = new Uint8Array()

/** Listens for the workers, and answers the requests of each of their connections, one after another. */
export async function startLinkListener(
  link: LinkServerPlan,
  limits: ListenerLimits,
  answer: AnswerRequest,
): Promise<LinkServer> {
  const open = new Set<TLSSocket>()
  let isClosed = false
  const tls = { ...linkTls(link), handshakeTimeout: limits.maxHandshakeMs }
  const server = createServer(tls, (socket) => {
    // A client without the certificate of the worker was refused meanwhile; or its handshake ended after the server was closed.
    if (isClosed) socket.destroy()
    if (socket.destroyed) return
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    serveConnection(socket, limits, answer)
  })
  // Node only reports a handshake that takes too long. Any process of the host can begin one, and never end it.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  const port = await listenForPeer(server, link)
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        isClosed = true
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  }
}

function serveConnection(socket: TLSSocket, limits: ReaderLimits, answer: AnswerRequest): void {
  const reader = new RequestReader(limits)
  let isAnswering = false

  const serve = async (request: LinkRequest) => {
    isAnswering = true
    const bytes = answerBytes(await answer(request), request.isLast)
    isAnswering = false
    // The worker may have gone, or been refused, meanwhile.
    if (!socket.writable) return
    if (request.isLast) socket.end(bytes)
    else socket.write(bytes)
  }

  const refuse = () => {
    socket.end(answerBytes({ status: 400 }, true))
    socket.removeAllListeners('data').resume()
  }

  socket.on('error', () => socket.destroy())
  socket.on('data', (bytes: Buffer) => {
    // A worker sends nothing while it waits.
    if (isAnswering) return refuse()
    try {
      const request = reader.push(bytes)
      if (request !== undefined) void serve(request)
    } catch {
      refuse()
    }
  })
}

/** Head and body as one piece: each write is a record of TLS and a call of the kernel. */
function answerBytes({ status, body = EMPTY }: LinkAnswer, isLast: boolean): Buffer {
  const head =
    `HTTP/1.1 ${status} ${REASONS[status]}\r\ncontent-type: application/json\r\n` +
    `content-length: ${body.length}\r\n${isLast ? 'connection: close\r\n' : ''}\r\n`
  const bytes = Buffer.allocUnsafe(head.length + body.length)
  bytes.write(head, 'latin1')
  bytes.set(body, head.length)
  return bytes
}
