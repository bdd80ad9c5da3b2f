import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import https from 'node:https'
import { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { InputError } from '../verify/input-error.ts'
import { parseAddress, type Answer, type RouterClient } from '../verify/router-client.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

const CONNECT_MS = 30_000
/** Keep-alive probe delay: a restarted machine resets the unknown connection when probed. */
const KEEP_ALIVE_MS = 10_000
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** How long a router may take for each exchange, from the request to the last byte of the answer, ms. */
export interface ExchangeLimits {
  readonly getMs: number
  readonly postMs: number
}

/**
 * A GET may wait for the firmware to make a report; a POST of secrets may wait minutes while a data disk is formatted.
 */
const LIMITS: ExchangeLimits = { getMs: 70_000, postMs: 810_000 }

/** A single TLS connection to a router: all requests go to the peer that was verified on it. */
export interface GuestConnection extends RouterClient {
  /** SHA-256 over the SPKI of the peer, lowercase hex. */
  readonly tlsSpkiSha256: string
  post(path: string, body: string): Promise<Answer>
  close(): void
}

/**
 * Opens the connection with any certificate: the peer is identified by its evidence only.
 * @throws InputError when the address is not https or names a user, or when no connection can be established
 */
export async function connectGuest(
  address: string,
  { getMs, postMs }: ExchangeLimits = LIMITS,
): Promise<GuestConnection> {
  const base = parseBase(address)
  const socket = await openSocket(base)
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  if (key === undefined) throw new InputError(`${base.origin} shows no certificate`)
  const tlsSpkiSha256 = createHash('sha256').update(key).digest('hex')
  const agent = new SingleConnection(socket)
  const fixed = { base, agent, tlsSpkiSha256 }
  return {
    base,
    tlsSpkiSha256,
    get: (path, headers = {}) =>
      exchange({ ...fixed, method: 'GET', path, headers, body: '', limitMs: getMs }),
    post: (path, body) =>
      exchange({ ...fixed, method: 'POST', path, headers: JOSE, body, limitMs: postMs }),
    close: () => void socket.destroy(),
  }
}

const JOSE = { 'content-type': 'application/jose' }

/** An agent that uses only the given socket and never opens another. */
class SingleConnection extends https.Agent {
  #socket: TLSSocket | undefined

  constructor(socket: TLSSocket) {
    super({ keepAlive: true, maxSockets: 1 })
    this.#socket = socket
  }

  /** Reports by `done` that there is no other socket: Node also asks when the first one closes, where nothing catches. */
  override createConnection(
    _options: object,
    done?: (error: Error | null, socket: Duplex) => void,
  ): TLSSocket | undefined {
    const socket = this.#socket
    this.#socket = undefined
    if (socket !== undefined) return socket
    done?.(new Error('the router closed the connection that was proven'), new Duplex())
    return undefined
  }
}

function parseBase(address: string): URL {
  const base = parseAddress(address)
  if (base?.protocol !== 'https:') throw new InputError(`${address} is no https address`)
  return base
}

async function openSocket({ hostname, port, origin }: URL): Promise<TLSSocket> {
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = connect({
    host,
    port: port === '' ? 443 : Number(port),
    minVersion: 'TLSv1.3',
    // The evidence identifies the peer: its TLS key is compared with the key that the evidence binds.
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })
  // Between requests the socket has no other error listener, and an unhandled `error` event ends the process.
  socket.on('error', () => {})
  const timer = setTimeout(() => socket.destroy(new Error('time-out')), CONNECT_MS)
  try {
    await once(socket, 'secureConnect')
    return socket.setKeepAlive(true, KEEP_ALIVE_MS)
  } catch (error) {
    throw new InputError(`no connection to ${origin}: ${messageOfThrown(error)}`, { cause: error })
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
  readonly limitMs: number
}

async function exchange(given: Exchange): Promise<Answer> {
  const { base, agent, method, path, headers, body, tlsSpkiSha256, limitMs } = given
  // Limits the whole exchange; a socket timeout would restart with every byte.
  const signal = AbortSignal.timeout(limitMs)
  const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  try {
    const request = https.request(new URL(path, base), {
      agent,
      method,
      headers: { ...headers, ...length },
      signal,
    })
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
    const reason = signal.aborted ? `not within ${limitMs / 1_000} s` : messageOfThrown(error)
    throw new InputError(`no answer from ${base.origin}: ${reason}`, { cause: error })
  }
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve).once('error', reject)
  })
}
