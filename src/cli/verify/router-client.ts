import { createHash } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { TLSSocket } from 'node:tls'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { namesUser } from '../../protocol/url-user.ts'
import { InputError } from './input-error.ts'

const TIMEOUT_MS = 30_000
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

export interface Answer {
  readonly status: number
  readonly body: Buffer<ArrayBuffer>
  readonly headers: http.IncomingHttpHeaders
  /** SHA-256 over the SPKI of the peer of this very connection, in hex; undefined over plain HTTP. */
  readonly tlsSpkiSha256: string | undefined
}

export interface RouterClient {
  readonly base: URL
  /**
   * GET of a path below the base. Redirects are returned, not followed.
   * @throws InputError when there is no answer, or when the answer is too large
   */
  get(path: string, headers?: Record<string, string>): Promise<Answer>
}

/** A client of a router that may be several hosts: each call goes over a connection of its own. */
export interface FleetClient extends RouterClient {
  /** Gets several paths over one connection, so that one host of a fleet answers all of them. */
  getTogether(...paths: readonly string[]): Promise<Answer[]>
}

/**
 * How a router's identity is established: by what it signs (`evidence`; then any certificate will do), or by the
 * certificate authority (`authorities`).
 */
export type PeerTrust = 'evidence' | 'authorities'

/**
 * A client of a router that opens a new connection for each call. With any `trust`, it sends an API key only to a
 * router whose certificate an authority has signed, or on loopback.
 */
export function createRouterClient(address: string, trust: PeerTrust): FleetClient {
  const base = parseBase(address)
  const at = (path: string) => new URL(base.pathname.replace(/\/$/, '') + path, base)
  return {
    base,
    get: (path, headers = {}) => send(at(path), { headers, agent: false, trust }),
    getTogether: async (...paths) => {
      const { Agent } = base.protocol === 'http:' ? http : https
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      try {
        return await Promise.all(paths.map((path) => send(at(path), { agent, trust })))
      } finally {
        agent.destroy()
      }
    },
  }
}

function parseBase(address: string): URL {
  const base = parseAddress(address)
  if (base?.protocol !== 'https:' && base?.protocol !== 'http:') {
    throw new InputError(`${address} is no http or https address`)
  }
  return base
}

/**
 * Parses the address of a router; undefined when it is not a URL.
 * @throws InputError when the address contains a user name or password; the message does not quote it
 */
export function parseAddress(address: string): URL | undefined {
  const base = URL.canParse(address) ? new URL(address) : undefined
  if (base === undefined || !namesUser(base)) return base
  throw new InputError(
    'leave user name and password out of the address: whoever answers there would get them, proven or not',
  )
}

interface Call {
  readonly headers?: Record<string, string>
  readonly agent: http.Agent | false
  readonly trust: PeerTrust
}

function send(url: URL, call: Call): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const fail = (error: Error) =>
    reject(new InputError(reasonOf(error, url, call), { cause: error }))
  const receive = (response: http.IncomingMessage) => {
    const { socket } = response
    const tlsSpkiSha256 = socket instanceof TLSSocket ? peerKey(socket) : undefined
    const { statusCode: status = 0, headers: received } = response
    readBody(response).then(
      (body) => resolve({ status, body, headers: received, tlsSpkiSha256 }),
      fail,
    )
  }
  const { headers, agent } = call
  const options = { headers, agent, timeout: TIMEOUT_MS }
  const request =
    url.protocol === 'http:'
      ? http.get(url, options, receive)
      : https.get(url, { ...options, rejectUnauthorized: needsAuthority(url, call) }, receive)
  request.on('error', fail)
  // After its answer nothing else listens for errors of the connection, and one without a listener ends the process.
  request.on('socket', (socket) => socket.off('error', ignoreBroken).on('error', ignoreBroken))
  request.on('timeout', () => request.destroy(new Error('time-out')))
  return promise
}

function ignoreBroken(): void {
  // The request reports the failure, if there still is one.
}

/**
 * Whether the certificate must be signed by an authority. On loopback it need not be, because the local stack's
 * certificate is self-signed. Elsewhere an API key needs it: nothing else proves who would receive the key.
 */
function needsAuthority({ hostname }: URL, call: Call): boolean {
  return (call.trust === 'authorities' || hasKey(call)) && !isLoopbackHost(hostname)
}

function hasKey({ headers = {} }: Call): boolean {
  return 'authorization' in headers
}

/** Codes of OpenSSL and Node for untrusted certificates. */
const UNTRUSTED = /CERT|UNABLE_TO/

function reasonOf(error: NodeJS.ErrnoException, url: URL, call: Call): string {
  const { origin } = url
  const { code = '', message } = error
  if (!needsAuthority(url, call) || !UNTRUSTED.test(code))
    return `no answer from ${origin}: ${message}`
  const refused = hasKey(call)
    ? `CMR_API_KEY is not sent to ${origin}`
    : `${origin} is not asked for its keys`
  const instead = hasKey(call) ? '--evidence from a file' : '--root-key, or --jwks from a file'
  return `${refused}, for no authority vouches for its certificate (${code}): give ${instead}`
}

function peerKey(socket: TLSSocket): string | undefined {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
  return key && createHash('sha256').update(key).digest('hex')
}

async function readBody(response: http.IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of response) {
    const bytes = Buffer.from(part)
    size += bytes.length
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
    parts.push(bytes)
  }
  return Buffer.concat(parts)
}
