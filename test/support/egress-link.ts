import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http'
import type { Readable } from 'node:stream'
import type { Egress } from '../../src/enclave/open-egress.ts'
import { refusal } from '../../src/enclave/link/answer.ts'
import { sendReply } from '../../src/enclave/link-server/reply.ts'
import { listen } from './listen.ts'

export interface LinkAnswerText {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** The daemon's egress behind plain HTTP, where the link would be. */
export interface EgressLink {
  readonly port: number
  post(
    provider: string,
    body: string | Readable,
    headers?: OutgoingHttpHeaders,
  ): Promise<LinkAnswerText>
  /** Resolves with the answer's head. */
  open(
    provider: string,
    body: string | Readable,
    signal?: AbortSignal,
    headers?: OutgoingHttpHeaders,
  ): Promise<IncomingMessage>
  close(): Promise<void>
}

export async function startEgressLink(egress: Egress): Promise<EgressLink> {
  const server = createServer((incoming, response) => {
    const [, provider = '', ...path] = (incoming.url ?? '').split('/')
    egress
      .carry({ provider, path: `/${path.join('/')}`, request: incoming, response })
      .catch((error: unknown) => sendReply(response, refusal(error)))
  })
  const port = await listen(server)
  const open: EgressLink['open'] = (provider, body, signal, headers) =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          path: `/${provider}/chat/completions`,
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          agent: false,
          ...(signal ? { signal } : {}),
        },
        resolve,
      )
      sent.on('error', reject)
      if (typeof body === 'string') sent.end(body)
      else body.pipe(sent)
    })
  return {
    port,
    open,
    async post(provider, body, headers) {
      const answer = await open(provider, body, undefined, headers)
      let text = ''
      for await (const part of answer) text += String(part)
      return { status: answer.statusCode ?? 0, headers: answer.headers, text }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
