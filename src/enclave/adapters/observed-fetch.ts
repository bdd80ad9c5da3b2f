import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { finalAnswer } from '../outbound/final-answer.ts'
import { peerSpkiSha256 } from '../outbound/peer-key.ts'
import { connectTls, hasPublicName, tlsAddress } from '../outbound/tls-connect.ts'

interface ObservedRequest {
  readonly url: string
  readonly maxBytes: number
  readonly webPki: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** The body of a 200 answer, and the peer's TLS key on the connection that carried it. */
interface ObservedReply {
  readonly body: Bytes
  readonly tlsSpkiSha256: string
}

/**
 * Fetches a document over a connection of its own, without following redirects.
 * @throws EvidenceRefused when the provider does not answer with a 200 in time, the document is too large, or no key
 *   can be observed
 */
export type ObservedFetch = (send: ObservedRequest) => Promise<ObservedReply>

const CONNECT_MS = 5_000
const ANSWER_MS = 20_000

/** @param now ms */
export function createObservedFetch(now: () => number): ObservedFetch {
  return (wanted) => observe(wanted, now)
}

async function observe(
  { url, maxBytes, webPki, headers }: ObservedRequest,
  now: () => number,
): Promise<ObservedReply> {
  const address = tlsAddress(url)
  if (address === undefined) throw new EvidenceRefused('plain_http')
  const target = {
    ...address,
    webPki: webPki && hasPublicName(address.host),
    connectMs: CONNECT_MS,
    now,
  }
  const socket = await connectTls(target).catch((cause: unknown) => {
    throw new EvidenceRefused('unreachable', [], { cause })
  })
  try {
    const tlsSpkiSha256 = await peerSpkiSha256(socket)
    if (tlsSpkiSha256 === undefined) throw new EvidenceRefused('no_binding')
    const response = await send(url, socket, { ...headers, 'accept-encoding': 'identity' })
    if (response.statusCode !== 200) throw new EvidenceRefused('unreachable')
    return { tlsSpkiSha256, body: await readBounded(response, maxBytes) }
  } finally {
    socket.destroy()
  }
}

async function send(
  url: string,
  socket: TLSSocket,
  headers: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const sent = request(url, {
    headers: { accept: 'application/json', ...headers },
    createConnection: () => socket,
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  const answered = finalAnswer(sent)
  sent.end()
  try {
    return await answered
  } catch (cause) {
    throw new EvidenceRefused('unreachable', [], { cause })
  }
}

async function readBounded(response: IncomingMessage, maxBytes: number): Promise<Bytes> {
  const parts: Uint8Array[] = []
  let size = 0
  try {
    for await (const part of response as AsyncIterable<Uint8Array>) {
      size += part.length
      if (size > maxBytes) break
      parts.push(part)
    }
  } catch (cause) {
    throw new EvidenceRefused('unreachable', [], { cause })
  }
  if (size > maxBytes) throw new EvidenceRefused('too_large')
  return concatBytes(...parts)
}
