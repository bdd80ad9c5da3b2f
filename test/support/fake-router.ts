import { X509Certificate, createHash } from 'node:crypto'
import { createServer } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { makeLinkCertificates, type KeyPair } from '../../src/host/stack/link-certificates.ts'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Envelope } from '../../src/protocol/envelope.ts'
import type { LogProofs, TrustBundleInput } from '../../src/protocol/trust-bundle.ts'
import type { ClientDeps, ClientOptions } from '../../src/client/options.ts'
import { streamOf } from '../../src/client/transport.ts'
import { memoryState } from '../../src/client/memory-state.ts'
import { FakeEhbp } from './fake-ehbp.ts'
import { listen } from './listen.ts'
import { logProofsOf } from './release-log.ts'
import { NOW } from './synthetic-snp.ts'
import { envelopeOf, signBundle, type EnvelopeChanges, type World } from './synthetic-world.ts'

/** How a host of a synthetic world misbehaves. */
export interface Misdeeds {
  /** Members of the envelope, for REPORT_DATA to vouch for or changed after the report was made. */
  readonly envelope?: (honest: EnvelopeChanges) => EnvelopeChanges
  /** The text of the envelope as it is sent. */
  readonly envelopeText?: (honest: string) => string
  readonly bundle?: Partial<TrustBundleInput>
  readonly bundleJws?: (honest: string) => string
  /** The proofs that bundle and manifest are in the public log. */
  readonly logProofs?: (honest: LogProofs) => LogProofs | undefined
  /** The nonce that is used in place of the one that was asked for. */
  readonly nonce?: string
  /** The key of the envelope in place of the one that the connection shows. */
  readonly envelopeSpki?: string
  /** The digest of the HPKE key configuration that the envelope names; empty for an envelope without such a key. */
  readonly envelopeHpke?: string
  /** How often it answers that it has made too many reports, and for how many seconds. */
  readonly limited?: { readonly times: number; readonly retryAfter: number }
  /** The HPKE key configuration as it is sent. */
  readonly hpkeKeys?: (honest: Uint8Array) => Uint8Array
}

/** A host that shows evidence of a synthetic world over real TLS, and answers chat requests. */
export interface FakeRouter {
  readonly port: number
  readonly baseURL: string
  readonly spki: string
  /** What reached it besides requests for evidence: method, path, headers and body of each request. */
  readonly received: readonly string[]
  readonly ehbp: FakeEhbp
  /** How often it was asked for evidence. */
  evidenceAsked(): number
  connections(): number
  misbehave(misdeeds: Misdeeds): void
  /** Shows another key on new connections, and closes those that are open. */
  swapKey(pair: KeyPair): void
  /** Ends the idle connections. */
  dropIdle(): void
  close(): void
}

export const newKeyPair = async (): Promise<KeyPair> =>
  (await makeLinkCertificates(Date.now())).server

export function spkiOf({ certPem }: KeyPair): string {
  const key = new X509Certificate(certPem).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('hex')
}

const bundles = new WeakMap<World, Promise<string>>()

/** The one bundle of a world: a second signature would make it another bundle of the same version. */
function bundleOnce(world: World): Promise<string> {
  const signed = bundles.get(world) ?? signBundle(world)
  bundles.set(world, signed)
  return signed
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

const hello: Answer = (_request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end('{"choices":[],"service":{"receipt_id":"5f0c0b1e-0000-4000-8000-000000000000"}}')
}

export async function startFakeRouter(world: World, answer: Answer = hello): Promise<FakeRouter> {
  let pair = await newKeyPair()
  let misdeeds: Misdeeds = {}
  let asked = 0
  let connections = 0
  const received: string[] = []
  const ehbp = await FakeEhbp.create()

  const evidence = async (nonce: string): Promise<string> => {
    const honest = {
      claimed: {
        tls_spki_sha256: misdeeds.envelopeSpki ?? spkiOf(pair),
        report_data_binding: {
          label: 'cmr/report-data/v2',
          hpke_key_config_sha256: misdeeds.envelopeHpke ?? ehbp.key.configSha256,
          configuration_sha256: 'c0'.repeat(32),
          receipt_key_thumbprint: world.receiptKey.kid,
          nonce: misdeeds.nonce ?? nonce,
        },
      },
    } as const
    const envelope: Envelope = await envelopeOf(world, misdeeds.envelope?.(honest) ?? honest)
    const text = JSON.stringify(envelope)
    return misdeeds.envelopeText?.(text) ?? text
  }
  const bundle = async (): Promise<string> => {
    const jws = await (misdeeds.bundle === undefined
      ? bundleOnce(world)
      : signBundle(world, misdeeds.bundle))
    const logged = await logProofsOf([world.manifestJws, jws], NOW - 60_000)
    const logProofs = misdeeds.logProofs === undefined ? logged : misdeeds.logProofs(logged)
    return JSON.stringify({
      trust_bundle_jws: misdeeds.bundleJws?.(jws) ?? jws,
      log_proofs: logProofs,
    })
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'https://router.test')
    const body = await buffer(request)
    if (url.pathname === '/attestation' && body.length === 0) {
      asked += 1
      const { times = 0, retryAfter = 0 } = misdeeds.limited ?? {}
      if (asked <= times) {
        response.writeHead(429, { 'retry-after': String(retryAfter) }).end()
        return
      }
      response.end(await evidence(url.searchParams.get('nonce') ?? ''))
    } else if (url.pathname === '/.well-known/trust.json' && body.length === 0) {
      response.end(await bundle())
    } else if (url.pathname === '/.well-known/hpke-keys' && body.length === 0) {
      response.end(misdeeds.hpkeKeys?.(ehbp.key.config) ?? ehbp.key.config)
    } else {
      received.push([request.method, request.url, JSON.stringify(request.headers), body].join(' '))
      const enc = request.headers['ehbp-encapsulated-key']
      if (typeof enc === 'string') await ehbp.serve(enc, request, response, body)
      else answer(request, response, body)
    }
  }
  const server = createServer({ key: pair.keyPem, cert: pair.certPem }, (request, response) => {
    serve(request, response).catch((error: unknown) =>
      response.destroy(error instanceof Error ? error : undefined),
    )
  })
  server.on('secureConnection', () => (connections += 1))
  server.keepAliveTimeout = 60_000
  const port = await listen(server)
  return {
    port,
    baseURL: `https://127.0.0.1:${port}`,
    get spki() {
      return spkiOf(pair)
    },
    received,
    ehbp,
    evidenceAsked: () => asked,
    connections: () => connections,
    misbehave: (next) => (misdeeds = next),
    swapKey: (next) => {
      pair = next
      server.setSecureContext({ key: pair.keyPem, cert: pair.certPem })
      server.closeIdleConnections()
    },
    dropIdle: () => server.closeIdleConnections(),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const trusting = new Agent({ connect: { rejectUnauthorized: false } })

/** A runtime's `fetch` for which every certificate is one of a public authority. */
const fetchAnyCertificate: typeof fetch = async (input, init = {}) => {
  const { body, headers, method, redirect, signal } = init
  const answer = await undiciFetch(input instanceof Request ? input.url : input, {
    dispatcher: trusting,
    ...(method !== undefined && { method }),
    ...(redirect !== undefined && { redirect }),
    ...(headers !== undefined && { headers: [...new Headers(headers)] }),
    ...(body instanceof Uint8Array && { body }),
    ...(signal !== undefined && { signal }),
  })
  const { status } = answer
  const streamed = answer.body === null ? null : streamOf(answer.body)
  return new Response(streamed, { status, headers: [...answer.headers] })
}

/** What a client of such a world is made with; its time can be moved. */
export function clientOf(
  world: World,
  router: Pick<FakeRouter, 'baseURL'>,
  more: Partial<ClientOptions> = {},
): { options: ClientOptions; deps: ClientDeps; readonly pass: (milliseconds: number) => void } {
  let now = NOW
  let nonces = 0
  return {
    options: { baseURL: router.baseURL, rootKey: world.root.jwk, state: memoryState(), ...more },
    deps: {
      now: () => now,
      fetch: fetchAnyCertificate,
      nonce: () => (++nonces).toString(16).padStart(64, '0'),
      anchors: [{ product: 'genoa', spkiSha256: world.chain.arkSpkiSha256 }],
    },
    pass: (milliseconds) => (now += milliseconds),
  }
}
