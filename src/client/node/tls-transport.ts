import type { TLSSocket } from 'node:tls'
// Version 8 needs Node 22; applications have Node 20 too.
import { Agent, fetch as undiciFetch } from 'undici-7'
import type { buildConnector } from 'undici-7'
import { AttestationRefused, ClientError } from '../errors.ts'
import type { BundleState, Settings } from '../options.ts'
import { proveHost, type Proof } from '../proof.ts'
import { Proofs } from '../proofs.ts'
import { proveAgain } from '../prove-again.ts'
import { RouterTrustSource, type TrustSource } from '../trust-source.ts'
import {
  streamOf,
  type IncomingAnswer,
  type OutgoingRequest,
  type Transport,
} from '../transport.ts'
import { requestOverSocket } from './request-over-socket.ts'
import { openTls } from './open-tls.ts'
import { peerKeyOf } from './peer-key.ts'

/** Connections that were proven with evidence still in force at `until`, in milliseconds since 1970. */
interface Epoch {
  readonly agent: Agent
  until: number
}

/**
 * Carries requests over TLS connections each of which was proven before the first byte of a request went into it:
 * the key that a connection shows must be one that the host's own evidence names.
 */
export class TlsTransport implements Transport {
  readonly #settings: Settings
  readonly #proofs: Proofs
  readonly #trust: TrustSource
  readonly #unproven: Agent
  readonly #closing = new Set<Promise<void>>()
  #epoch: Epoch
  #closed = false

  /** @throws ClientError when the address or the runtime does not expose a connection's key */
  constructor(settings: Settings, state: BundleState) {
    if (settings.base.protocol !== 'https:') {
      throw new ClientError('invalid_options', 'baseURL: without TLS there is no key to compare')
    }
    if (process.versions['bun'] !== undefined) {
      throw new ClientError('unsupported_runtime', 'Bun hides the connection: use transport "ehbp"')
    }
    this.#settings = settings
    this.#proofs = new Proofs(settings.deps.now)
    this.#unproven = new Agent({ connect: connector(() => openTls(settings.base)) })
    this.#trust = new RouterTrustSource(settings, state, fetchThrough(this.#unproven))
    this.#epoch = this.#newEpoch()
  }

  async send({ url, method, headers, body, signal }: OutgoingRequest): Promise<IncomingAnswer> {
    if (this.#epoch.until <= this.#settings.deps.now()) this.#renew()
    const { agent: dispatcher } = this.#epoch
    // An answer is digested as it was sent, so it must not be decompressed on the way.
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
    if (!this.#closed) {
      this.#retire(this.#epoch.agent)
      this.#retire(this.#unproven)
    }
    this.#closed = true
    await Promise.all(this.#closing)
  }

  #newEpoch(): Epoch {
    const epoch: Epoch = {
      until: Infinity,
      agent: new Agent({
        // A stream may be silent for as long as the router lets it.
        bodyTimeout: 0,
        headersTimeout: 0,
        connect: connector(() => this.#openProven(epoch)),
      }),
    }
    return epoch
  }

  /** New requests use new connections; running ones continue to their end. */
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
   * Where no host is proven yet, the bundle will be needed: it is asked for while the connection is being opened, so that
   * the proof costs the first request one round trip.
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

/** The host closed the connection after it had proven itself: the next one costs no further proof. */
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
  callback(null, socket)
}

function fetchThrough(dispatcher: Agent): typeof fetch {
  return async (input) => {
    const url = input instanceof Request ? input.url : input
    const answer = await undiciFetch(url, { dispatcher, redirect: 'manual' })
    return new Response(answer.body && streamOf(answer.body), { status: answer.status })
  }
}

/** The connector's error inside the one that `fetch` throws. */
function ownCauseOf(error: unknown): ClientError | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof ClientError ? cause : undefined
}
