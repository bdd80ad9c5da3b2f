import type { Bytes } from '../protocol/bytes.ts'
import type { Envelope } from '../protocol/envelope.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { TrustBundle } from '../protocol/trust-bundle.ts'
import { verdict, type Check } from '../verify/check.ts'
import { readEnvelope } from '../verify/envelope-hardware.ts'
import { verifyEnvelope } from '../verify/envelope.ts'
import { AttestationRefused, AttestationUnavailable } from './errors.ts'
import type { Settings } from './options.ts'
import type { TrustSource } from './trust-source.ts'

/** A host of the router that is proven: the holder of this key runs what the release root allows. */
export interface Proof {
  /** SHA-256 over the SPKI of its TLS key, hex. */
  readonly tlsSpkiSha256: string
  /** Milliseconds since 1970, both. */
  readonly provenAt: number
  readonly expiresAt: number
  readonly checks: readonly Check[]
  readonly envelope: Envelope
  readonly bundle: TrustBundle
  /** Its text, a compact JWS. */
  readonly bundleJws: string
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
}

/** An answer of the router to a question about itself. */
export interface HostAnswer {
  readonly status: number
  readonly body: Bytes
}

/** Asks one host for a path, such as `/attestation?nonce=...`. */
export type RequestHost = (path: string) => Promise<HostAnswer>

/** What the connection itself shows, where it shows anything. */
export interface ObservedConnection {
  readonly tlsSpkiSha256: string | undefined
}

/**
 * Proves one host: envelope for a nonce of our own, newest trust bundle, the connection's own key. The bundle is asked
 * for at the same time, so that a cold request waits one round trip more and not two.
 * @throws AttestationRefused when a check fails; it names the failed checks
 * @throws AttestationUnavailable when the host gives no evidence
 */
export async function proveHost(
  request: RequestHost,
  connection: ObservedConnection,
  settings: Settings,
  trustSource: TrustSource,
): Promise<Proof> {
  try {
    return await prove(request, connection, settings, trustSource)
  } catch (error) {
    if (error instanceof MalformedEvidence) throw new AttestationRefused([], error)
    throw error
  }
}

async function prove(
  request: RequestHost,
  { tlsSpkiSha256 }: ObservedConnection,
  { deps, policy, rootJwk }: Settings,
  trustSource: TrustSource,
): Promise<Proof> {
  const nonce = deps.nonce()
  const [trust, answer] = await Promise.all([
    trustSource.newest(),
    request(`/attestation?nonce=${nonce}`),
  ])
  if (answer.status !== 200) {
    throw new AttestationUnavailable(`the router answers ${answer.status} for its evidence`)
  }
  const envelope = readEnvelope(answer.body)
  const provenAt = deps.now()
  const maxAge = policy.maxAgeSeconds
  const result = await verifyEnvelope(envelope, {
    now: provenAt,
    simulated: policy.allowSimulated === true ? 'any' : 'refuse',
    ...(deps.anchors === undefined ? {} : { anchors: deps.anchors }),
    requireCrl: policy.requireCrl === true,
    trust: { bundle: trust.bundle, rootJwk },
    live: { nonce, tlsSpkiSha256, ...(maxAge === undefined ? {} : { maxAgeSeconds: maxAge }) },
  })
  const checks = [...trust.checks, ...result.checks]
  if (!verdict(checks).ok) throw new AttestationRefused(checks)
  return {
    tlsSpkiSha256: envelope.tls_spki_sha256,
    provenAt,
    expiresAt: expiryOf(envelope, trust.bundle, maxAge),
    checks,
    envelope,
    bundle: trust.bundle,
    bundleJws: trust.jws,
    notes: result.notes,
  }
}

function expiryOf(envelope: Envelope, bundle: TrustBundle, maxAge = Infinity): number {
  const seconds = Math.min(envelope.max_age_seconds, maxAge)
  return Math.min(Date.parse(envelope.issued_at) + seconds * 1000, Date.parse(bundle.expires_at))
}
