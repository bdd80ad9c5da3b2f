import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import https from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import { InputError } from '../verify/input-error.ts'
import type { Answer, RouterClient } from '../verify/router-client.ts'

/** A capture may wait for the platform's firmware. */
const TIMEOUT_MS = 70_000
const CONNECT_MS = 30_000
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** A single TLS connection to a router: all requests go to the peer that was verified on it. */
export interface GuestConnection extends RouterClient {
  /** SHA-256 over the SPKI of the peer, lowercase hex. */
  readonly tlsSpkiSha256: string
  post(path: string, body: string): Promise<Answer>
  close(): void
}

/**
 * Opens the connection with any certificate: the peer is identified by its evidence only.
 * @throws InputError when the address is not https or no connection is established
 */
export async function connectGuest(address: string): Promise<GuestConnection> {
  const base = parseAddress(address)
  const socket = await openSocket(base)
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  if (key === undefined) throw new InputError(`${base.origin} shows no certificate`)
  const tlsSpkiSha256 = createHash('sha256').update(key).digest('hex')
  const agent = new SingleConnection(socket)
  const send = (method: string, path: string, headers: Record<string, string>, body = '') =>
    exchange({ base, agent, method, path, headers, body, tlsSpkiSha256 })
  return {
    base,
    tlsSpkiSha256,
    get: (path, headers = {}) => send('GET', path, headers),
    post: (path, body) => send('POST', path, { 'content-type': 'application/jose' }, body),
    close: () => void socket.destroy(),
  }
}

/** Always returns the one socket, and opens no other. */
class SingleConnection extends https.Agent {
  #socket: TLSSocket | undefined

  constructor(socket: TLSSocket) {
    super({ keepAlive: true, maxSockets: 1 })
    this.#socket = socket
  }

  override createConnection(): TLSSocket {
    const socket = this.#socket
    this.#socket = undefined
    if (socket === undefined) throw new Error('the router closed the connection that was proven')
    return socket
  }
}

function parseAddress(address: string): URL {
  const base = URL.canParse(address) ? new URL(address) : undefined
  if (base?.protocol !== 'https:') throw new InputError(`${address} is no https address`)
  return base
}

async function openSocket({ hostname, port, origin }: URL): Promise<TLSSocket> {
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = connect({
    host,
    port: port === '' ? 443 : Number(port),
    minVersion: 'TLSv1.3',
    // The live key is compared with the one that the evidence binds.
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })
  const timer = setTimeout(() => socket.destroy(new Error('time-out')), CONNECT_MS)
  try {
    await once(socket, 'secureConnect')
    return socket
  } catch (error) {
    throw new InputError(`no connection to ${origin}: ${reasonOf(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

interface Exchange {
  readonly base: URL
  readonly agent: https.Agent
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
  readonly tlsSpkiSha256: string
}

async function exchange(given: Exchange): Promise<Answer> {
  const { base, agent, method, path, headers, body, tlsSpkiSha256 } = given
  const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  try {
    const request = https.request(new URL(path, base), {
      agent,
      method,
      headers: { ...headers, ...length },
      timeout: TIMEOUT_MS,
      // For the whole exchange: `timeout` begins anew with every byte.
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    request.on('timeout', () => request.destroy(new Error('time-out')))
    const answered = responseTo(request)
    request.end(body)
    const response = await answered
    const parts: Buffer[] = []
    let size = 0
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.length
      if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
      parts.push(part)
    }
    const { statusCode: status = 0, headers: received } = response
    return { status, body: Buffer.concat(parts), headers: received, tlsSpkiSha256 }
  } catch (error) {
    throw new InputError(`no answer from ${base.origin}: ${reasonOf(error)}`, { cause: error })
  }
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown error'
}
