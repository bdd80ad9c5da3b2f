import { request, type RequestOptions } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'
import type { CertificatePair } from './link-material.ts'

export interface LinkReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  json(): unknown
}

export interface LinkClientOptions {
  readonly port: number
  readonly serverCertPem: string
  readonly client?: CertificatePair
  readonly tls?: RequestOptions
}

/** Calls the link as the worker does. */
export function callLink(
  { port, serverCertPem, client, tls }: LinkClientOptions,
  path: string,
  init: { method?: string; body?: string | Buffer; headers?: Record<string, string> } = {},
): Promise<LinkReply> {
  return new Promise((resolve, reject) => {
    const call = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: init.method ?? 'GET',
        headers: init.headers,
        ca: serverCertPem,
        servername: 'enclave',
        agent: false,
        ...(client ? { cert: client.certPem, key: client.keyPem } : {}),
        ...tls,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const { statusCode: status = 0, headers } = response
          resolve({ status, headers, text, json: () => JSON.parse(text) as unknown })
        })
      },
    )
    call.on('error', reject)
    call.end(init.body)
  })
}
