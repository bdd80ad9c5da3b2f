// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { buffer } from 'node:stream/consumers'
import {
  Pkcs10CertificateRequestGenerator,
  PemConverter,
  SubjectAlternativeNameExtension,
} from '@peculiar/x509'
import { Agent, fetch as undiciFetch } from 'undici'
import { listen } from './listen.ts'
import { makeTestAuthority } from './test-authority.ts'

/** An attacker between a client and a host, with a certificate of a publicly trusted CA. */
export interface ManInTheMiddle {
  readonly baseURL: string
  /** The CA that issued the attacker's certificate. */
  readonly authorityPem: string
  /** Method, path, headers and body of every request that the attacker could read, in one text each. */
  readonly read: readonly string[]
  /** Changes what the host answers at a path; undefined to relay unchanged. */
  meddle: ((path: string, answer: Buffer) => Uint8Array) | undefined
  close(): void
}

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Everything is relayed to the host: evidence is genuine, made for the nonce of the client. */
export async function startManInTheMiddle(host: {
  readonly baseURL: string
}): Promise<ManInTheMiddle> {
  const authority = await makeTestAuthority()
  const keys = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: 'CN=127.0.0.1',
    keys,
    signingAlgorithm: SCHEME,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])],
  })
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
  const identity = {
    key: PemConverter.encode(pkcs8, 'PRIVATE KEY'),
    cert: await authority.sign(request.toString('pem')),
  }
  const read: string[] = []
  const onward = new Agent({ connect: { rejectUnauthorized: false } })
  const relay = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = 'GET', url = '/', rawHeaders } = incoming
    const body = await buffer(incoming)
    read.push([method, url, JSON.stringify(incoming.headers), body].join(' '))
    const answer = await undiciFetch(host.baseURL + url, {
      dispatcher: onward,
      method,
      headers: pairsOf(rawHeaders).filter(([name]) => !/^(host|connection)$/i.test(name)),
      ...(body.length === 0 ? {} : { body }),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const nonce = answer.headers.get('ehbp-response-nonce')
    outgoing.writeHead(answer.status, nonce === null ? {} : { 'ehbp-response-nonce': nonce })
    outgoing.end(middle.meddle?.(url.split('?')[0] ?? '', bytes) ?? bytes)
  }
  const server = createServer(identity, (incoming, outgoing) => {
    relay(incoming, outgoing).catch(() => outgoing.destroy())
  })
  const middle: ManInTheMiddle = {
    baseURL: `https://127.0.0.1:${await listen(server)}`,
    authorityPem: authority.rootPem,
    read,
    meddle: undefined,
    close: () => {
      server.closeAllConnections()
      server.close()
      void onward.close()
    },
  }
  return middle
}

function pairsOf(rawHeaders: readonly string[]): [string, string][] {
  return rawHeaders.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? '']] : [],
  )
}
