import { createServer, type Server as HttpsServer } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { X509Certificate } from 'node:crypto'
import type { Server, TlsOptions, TLSSocket } from 'node:tls'
import type { LinkServerPlan } from '../../protocol/boot.ts'
import { equalBytes } from '../../protocol/bytes.ts'
import { capHandshakes } from './handshake-cap.ts'
import { acceptUpgrades, type UpgradeListeners } from './upgrades.ts'

/**
 * Length of the listen queue. A worker opens a connection for each call that is not a message. If it opens hundreds at
 * once, the kernel would drop those that do not fit, and retry them only after a second or more.
 */
const BACKLOG = 4_096

export interface LinkServer {
  readonly port: number
  /** Stops listening and closes every connection. */
  close(): Promise<void>
}

export type LinkListener = (request: IncomingMessage, response: ServerResponse) => void

/** Limits for connections that have not proven who they are: any process on this machine can open them. */
export interface UnauthenticatedLimits {
  /** Connections whose handshake is not finished. */
  readonly handshakes: number
  /** Time limit of a handshake, ms. */
  readonly handshakeMs: number
}

export interface ServerOptions extends UpgradeListeners {
  readonly limits?: Partial<UnauthenticatedLimits> | undefined
}

/** As many handshakes as the listen queue holds: workers that all connect at once lose none. */
const UNAUTHENTICATED_LIMITS: UnauthenticatedLimits = { handshakes: BACKLOG, handshakeMs: 30_000 }

/**
 * Longer than a worker keeps an idle connection, so that the daemon does not close one while a request is on its way.
 */
const KEEP_ALIVE_MS = 60_000

/**
 * Listens for the link's only peer, the worker. The handshake trusts only the worker's certificate, and the presented
 * certificate is then compared byte for byte: a peer without exactly that certificate gets no HTTP. TLS 1.3 only.
 */
export async function startLinkServer(
  link: LinkServerPlan,
  listener: LinkListener,
  { limits: given, ...listeners }: ServerOptions = {},
): Promise<LinkServer> {
  const limits = { ...UNAUTHENTICATED_LIMITS, ...given }
  const tls = { ...linkTls(link), handshakeTimeout: limits.handshakeMs }
  const server = createServer({ ...tls, keepAliveTimeout: KEEP_ALIVE_MS }, listener)
  const upgraded = acceptUpgrades(server, listeners)
  const port = await listenForPeer(server, link, limits)
  return {
    port,
    close() {
      upgraded.close()
      return close(server)
    },
  }
}

/** The TLS options of a link server. */
export function linkTls(link: LinkServerPlan): TlsOptions & { readonly noDelay: boolean } {
  return {
    cert: link.serverCertPem,
    key: link.serverKeyPem,
    ca: link.workerCertPem,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    maxVersion: 'TLSv1.3',
    noDelay: true,
  }
}

/**
 * Lets a server listen. Destroys connections of any other peer before the server's own listeners see them, and the
 * oldest of too many connections whose handshake is unfinished.
 * @returns the port
 */
export async function listenForPeer(
  server: Server,
  link: LinkServerPlan,
  { handshakes }: Pick<UnauthenticatedLimits, 'handshakes'> = UNAUTHENTICATED_LIMITS,
): Promise<number> {
  capHandshakes(server, handshakes)
  const expected = new X509Certificate(link.workerCertPem).raw
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    if (!isPeer(socket, expected)) socket.destroy()
  })
  await listen(server, link)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('internal error: no port')
  return address.port
}

function isPeer(socket: TLSSocket, expected: Uint8Array): boolean {
  const presented: { raw?: Uint8Array } | null = socket.getPeerCertificate()
  return socket.authorized && presented?.raw !== undefined && equalBytes(presented.raw, expected)
}

function listen(server: Server, { host, port }: LinkServerPlan): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: HttpsServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
