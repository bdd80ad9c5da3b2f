import type { ReadableStream } from 'node:stream/web'
import { Agent, fetch, type HeadersInit } from 'undici'
import { LINK_HOST, type KeyPair } from './link-certificates.ts'

/** The worker's end of a link. */
export interface LinkEnd {
  readonly port: number
  readonly worker: KeyPair
  readonly serverCertPem: string
  /** The name in the server's certificate; the daemon's unless given. */
  readonly host?: string
  /** How long the server may take until an answer begins, ms; undici's limit unless given. */
  readonly answerMs?: number
}

/** The request that Miniflare and wrangler pass to a function behind a binding. */
export interface BoundRequest {
  readonly url: string
  readonly method: string
  readonly headers: HeadersInit
  arrayBuffer(): Promise<ArrayBuffer>
}

/** Makes the host's own Response. */
type MakeResponse<Answer> = (
  body: ReadableStream | null,
  init: { status: number; headers: [string, string][] },
) => Answer

/** The worker's `LINK` as a function. */
export interface LinkBinding<Answer> {
  fetch(request: BoundRequest): Promise<Answer>
  close(): Promise<void>
}

/**
 * The link for hosts that cannot pin certificates themselves, such as Miniflare and `wrangler dev`: TLS 1.3 that
 * presents one certificate and trusts one. (Miniflare's own `external.https` ignores both and uses plain HTTP.)
 */
export function createLinkBinding<Answer>(
  link: LinkEnd,
  makeResponse: MakeResponse<Answer>,
): LinkBinding<Answer> {
  const dispatcher = new Agent({
    ...(link.answerMs === undefined ? {} : { headersTimeout: link.answerMs }),
    connect: {
      servername: link.host ?? LINK_HOST,
      ca: link.serverCertPem,
      cert: link.worker.certPem,
      key: link.worker.keyPem,
      minVersion: 'TLSv1.3',
    },
  })
  return {
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const body = await request.arrayBuffer()
      const answer = await fetch(`https://127.0.0.1:${link.port}${pathname}${search}`, {
        method: request.method,
        headers: request.headers,
        dispatcher,
        ...(body.byteLength === 0 ? {} : { body }),
      })
      const headers = [...answer.headers]
      return makeResponse(answer.body, { status: answer.status, headers })
    },
    close: () => dispatcher.close(),
  }
}
