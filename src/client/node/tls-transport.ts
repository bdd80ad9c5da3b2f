import type { TLSSocket } from 'node:tls'
// undici 7: version 8 needs Node 22, and applications may run Node 20.
import { Agent, fetch as undiciFetch } from 'undici-7'
import type { buildConnector } from 'undici-7'
import { AttestationRefused, ClientError } from '../errors.ts'
import type { BundleState, Settings } from '../options.ts'
import { proveHost, type Proof } from '../proof.ts'
import { Proofs } from '../proofs.ts'
import { proveAgain } from '../prove-again.ts'
import { RouterTrustSource, type TrustSource } from '../trust-source.ts'
import type { IncomingAnswer, OutgoingRequest, Transport } from '../transport.ts'
import { endWhenRead } from './end-when-read.ts'
import { requestOverSocket } from './request-over-socket.ts'
import { openTls } from './open-tls.ts'
import { peerKeyOf } from './peer-key.ts'

/** Connections that were verified with evidence that is valid until `until`, milliseconds since 1970. */
interface Epoch {
  readonly agent: Agent
  until: number
}

/**
 * Sends requests over TLS connections, each of which was verified before the first byte of a request: the key in the
 * peer's certificate must be the one named in the host's own evidence.
 */
export class TlsTransport implements Transport {
  readonly #settings: Settings
  readonly #proofs: Proofs
  readonly #trust: TrustSource
  readonly #closing = new Set<Promise<void>>()
  #epoch: Epoch
  #closed = false

  /** @throws ClientError when the address has no TLS (`invalid_options`) */
  constructor(settings: Settings, state: BundleState) {
    if (settings.base.protocol !== 'https:') {
      throw new ClientError('invalid_options', 'baseURL: without TLS there is no key to compare')
    }
    this.#settings = settings
    this.#proofs = new Proofs(settings.deps.now)
    this.#trust = new RouterTrustSource(settings, state, fetchUnproven(settings.base))
    this.#epoch = this.#newEpoch()
  }

  async send({ url, method, headers, body, signal }: OutgoingRequest): Promise<IncomingAnswer> {
    if (this.#epoch.until <= this.#settings.deps.now()) this.#renew()
    const { agent: dispatcher } = this.#epoch
    // Answers are digested as sent, so they must not be compressed.
    headers.set('accept-encoding', 'identity')
    try {
      const answer = await undiciFetch(url, {
        dispatcher,
        method,
        headers: [...headers],
        redirect: 'manual',
        signal,
        ...(body === undefined ? {} : { body }),
      })
      const { status, statusText } = answer
      return { status, statusText, headers: new Headers([...answer.headers]), body: answer.body }
    } catch (error) {
      throw ownCauseOf(error) ?? error
    }
  }

  proofs(): readonly Proof[] {
    return this.#proofs.current()
  }

  refresh(): void {
    this.#proofs.forget()
    this.#renew()
  }

  async close(): Promise<void> {
    if (!this.#closed) this.#retire(this.#epoch.agent)
    this.#closed = true
    await Promise.all(this.#closing)
  }

  #newEpoch(): Epoch {
    const epoch: Epoch = {
      until: Infinity,
      agent: new Agent({
        // The router limits how long a stream may be silent.
        bodyTimeout: 0,
        headersTimeout: 0,
        connect: connector(() => this.#openProven(epoch)),
      }),
    }
    return epoch
  }

  /** Makes new requests use new connections; running requests continue to their end. */
  #renew(): void {
    this.#retire(this.#epoch.agent)
    this.#epoch = this.#newEpoch()
  }

  #retire(agent: Agent): void {
    const closing = agent.close().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  #openProven(epoch: Epoch): Promise<TLSSocket> {
    const { pause } = this.#settings.deps
    return proveAgain(() => this.#tryOpen(epoch), { isTransient: mayPass, pause })
  }

  /**
   * The source for the bundle. Where no host is verified yet, the bundle will be needed, so it is fetched while the
   * connection is being opened; verification then costs the first request only one round trip.
   */
  #trustAtOnce(): TrustSource {
    if (this.#proofs.current().length > 0) return this.#trust
    const newest = this.#trust.newest()
    newest.catch(() => {})
    return { newest: () => newest }
  }

  async #tryOpen(epoch: Epoch): Promise<TLSSocket> {
    const { base } = this.#settings
    const trust = this.#trustAtOnce()
    const socket = await openTls(base)
    try {
      const tlsSpkiSha256 = peerKeyOf(socket)
      const request = (path: string) =>
        requestOverSocket(socket, base.host, base.pathname.replace(/\/$/, '') + path)
      const prove = () => proveHost(request, { tlsSpkiSha256 }, this.#settings, trust)
      const { expiresAt } = await this.#proofs.obtain(tlsSpkiSha256, prove)
      if (socket.destroyed || socket.readableEnded) throw new ConnectionLost()
      epoch.until = Math.min(epoch.until, expiresAt)
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    }
  }
}

/**
 * The host closed the connection after it had proven itself. The next connection to the same key needs no further
 * proof.
 */
class ConnectionLost extends Error {}

function mayPass(error: unknown): boolean {
  if (error instanceof ConnectionLost) return true
  return error instanceof AttestationRefused && error.failed.join() === 'tls_key'
}

function connector(open: () => Promise<TLSSocket>): buildConnector.connector {
  return (_options, callback) => void passSocket(open, callback)
}

async function passSocket(
  open: () => Promise<TLSSocket>,
  callback: buildConnector.Callback,
): Promise<void> {
  let socket: TLSSocket
  try {
    socket = await open()
  } catch (error) {
    callback(error instanceof Error ? error : new Error('no connection'), null)
    return
  }
  callback(null, endWhenRead(socket))
}

/**
 * Fetches a document from a host that is not verified, over a connection of its own. Not with undici, which decodes what
 * it is sent: some answers that anybody on the path can give would end the process.
 */
function fetchUnproven(base: URL): typeof fetch {
  return async (input) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input)
    const socket = await openTls(base)
    try {
      const { status, body } = await requestOverSocket(socket, base.host, pathname)
      return new Response(status === 200 ? body : null, { status })
    } finally {
      socket.destroy()
    }
  }
}

/** The connector's error inside the one that `fetch` throws. */
function ownCauseOf(error: unknown): ClientError | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof ClientError ? cause : undefined
}
