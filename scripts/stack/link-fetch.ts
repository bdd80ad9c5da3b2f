import { Agent, fetch as undiciFetch, type RequestInit } from 'undici'
import { LINK_HOST, type KeyPair } from './link-certificates.ts'

/** The worker's end of a link, for hosts whose bindings cannot pin a certificate themselves. */
export interface LinkEnd {
  readonly port: number
  readonly worker: KeyPair
  readonly serverCertPem: string
}

/** The link as a function: TLS 1.3, showing one certificate and trusting one. */
export interface LinkFetch {
  fetch(url: string, init: RequestInit): ReturnType<typeof undiciFetch>
  close(): Promise<void>
}

export function createLinkFetch(link: LinkEnd): LinkFetch {
  const dispatcher = new Agent({
    connect: {
      host: '127.0.0.1',
      port: link.port,
      servername: LINK_HOST,
      ca: link.serverCertPem,
      cert: link.worker.certPem,
      key: link.worker.keyPem,
      minVersion: 'TLSv1.3',
    },
  })
  return {
    fetch: (url, init) => {
      const { pathname, search } = new URL(url)
      const target = `https://127.0.0.1:${link.port}${pathname}${search}`
      return undiciFetch(target, { ...init, dispatcher })
    },
    close: () => dispatcher.close(),
  }
}
