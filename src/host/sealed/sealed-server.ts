import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Server } from 'node:net'
import type { TlsMaterial } from '../../protocol/boot.ts'
import { MAX_UNSEAL_BYTES, UNSEAL_PATH } from '../../protocol/unseal.ts'
import { createSealedAnswers, sealed, type Reply } from './sealed-answers.ts'
import type { DaemonLink } from './daemon-link.ts'

/** Serves instead of workers until the router has its secrets. */
export interface SealedServer {
  /** Ports on loopback, behind the front. */
  readonly ports: { readonly http: number; readonly https: number }
  close(): void
}

/** Tight limits: no honest client needs longer, and few connections are needed before the router serves. */
const TIMES: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
}

const MAX_CONNECTIONS = 512

/** @param tls the key named in the evidence */
export async function openSealedServer(tls: TlsMaterial, link: DaemonLink): Promise<SealedServer> {
  const answers = createSealedAnswers(link)
  const secure = createHttpsServer(
    { ...TIMES, key: tls.keyPem, cert: tls.certPem, minVersion: 'TLSv1.3' },
    listener(answers, true),
  )
  const plain = createHttpServer(TIMES, listener(answers, false))
  const [http, https] = await Promise.all([listen(plain), listen(secure)])
  return {
    ports: { http, https },
    close() {
      for (const server of [plain, secure]) {
        server.close()
        server.closeIdleConnections()
      }
    },
  }
}

function listener(
  answers: ReturnType<typeof createSealedAnswers>,
  secure: boolean,
): RequestListener {
  return (request, response) => {
    const send = ({ status, body, headers }: Reply) => {
      const fixed = { 'content-type': 'application/json', 'cache-control': 'no-store' }
      response.writeHead(status, { ...fixed, ...headers })
      response.end(body)
    }
    answer(request, answers, secure).then(send, () => send(sealed()))
  }
}

async function answer(
  request: IncomingMessage,
  answers: ReturnType<typeof createSealedAnswers>,
  secure: boolean,
): Promise<Reply> {
  const url = new URL(request.url ?? '/', 'https://sealed')
  if (request.method === 'POST' && url.pathname === UNSEAL_PATH && secure) {
    const document = await readDocument(request)
    return document === undefined ? { status: 413, body: '{}' } : answers.unseal(document)
  }
  request.resume()
  if (request.method !== 'GET') return sealed(url.pathname)
  return answers.get(url, request.socket.remoteAddress ?? '')
}

async function readDocument(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length
    if (size <= MAX_UNSEAL_BYTES) parts.push(part)
  }
  return size > MAX_UNSEAL_BYTES ? undefined : Buffer.concat(parts)
}

function listen(server: Server): Promise<number> {
  server.maxConnections = MAX_CONNECTIONS
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' ? (address?.port ?? 0) : 0)
    })
  })
}
