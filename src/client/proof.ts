import type { Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import type { Envelope } from '../protocol/envelope.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { TrustBundle } from '../protocol/trust-bundle.ts'
import { verdict, type Check } from '../verify/check.ts'
import { readEnvelope } from '../verify/envelope-hardware.ts'
import { verifyEnvelope } from '../verify/envelope.ts'
import { checkLogged, type LoggedResult } from '../verify/transparency/check-logged.ts'
import type { LogPolicy } from '../verify/transparency/log-policy.ts'
import { AttestationRefused, AttestationUnavailable } from './errors.ts'
import type { Settings } from './options.ts'
import type { NewestTrust, TrustSource } from './trust-source.ts'

/** A verified host of the router: the holder of this key runs software that the release root allows. */
export interface Proof {
  /** SHA-256 over the SPKI of its TLS key, hex. */
  readonly tlsSpkiSha256: string
  /** Milliseconds since 1970; `expiresAt`, too. */
  readonly provenAt: number
  readonly expiresAt: number
  /** Whether the platform is a simulated one, which was allowed and proves nothing about any machine. */
  readonly simulated: boolean
  readonly checks: readonly Check[]
  readonly envelope: Envelope
  readonly bundle: TrustBundle
  /** The bundle's text, a compact JWS. */
  readonly bundleJws: string
  /** The HPKE key configuration that bodies are encrypted to; undefined where the connection is pinned. */
  readonly hpkeKeyConfig: Bytes | undefined
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
}

/** An answer of the router with its evidence. */
export interface HostAnswer {
  readonly status: number
  readonly body: Bytes
  /** `Retry-After`, where it was in seconds. */
  readonly retryAfterSeconds?: number
}

/** Requests a path from one host, such as `/attestation?nonce=...`. */
export type RequestHost = (path: string) => Promise<HostAnswer>

/** The keys that will protect a request, which the evidence must name. */
export interface ObservedKeys {
  /** SHA-256 over the SPKI of the connection's peer, hex. */
  readonly tlsSpkiSha256?: string
  /** The HPKE key configuration that the host serves. */
  readonly hpkeKeyConfig?: Bytes
}

/**
 * Verifies one host: an envelope for a new nonce, the newest trust bundle, and the key that will be used. They are
 * fetched at the same time, so that a first request needs one more round trip and not three.
 * @throws AttestationRefused when a check fails; it names the failed checks
 * @throws AttestationUnavailable when the host provides no evidence
 */
export async function proveHost(
  request: RequestHost,
  keys: ObservedKeys | Promise<ObservedKeys>,
  settings: Settings,
  trustSource: TrustSource,
): Promise<Proof> {
  try {
    return await prove(request, keys, settings, trustSource)
  } catch (error) {
    if (error instanceof MalformedEvidence) throw new AttestationRefused([], error)
    throw error
  }
}

async function prove(
  request: RequestHost,
  keys: ObservedKeys | Promise<ObservedKeys>,
  { deps, logPolicy, policy, rootJwk }: Settings,
  trustSource: TrustSource,
): Promise<Proof> {
  const nonce = deps.nonce()
  const [{ tlsSpkiSha256, hpkeKeyConfig }, trust, answer] = await Promise.all([
    keys,
    trustSource.newest(),
    request(`/attestation?nonce=${nonce}`),
  ])
  if (answer.status !== 200) {
    const message = `the router answers ${answer.status} for its evidence`
    throw new AttestationUnavailable(message, { retryAfterSeconds: answer.retryAfterSeconds })
  }
  const envelope = readEnvelope(answer.body)
  const provenAt = deps.now()
  const maxAge = policy.maxAgeSeconds
  const hpkeKeyConfigSha256 = hpkeKeyConfig && (await sha256Hex(hpkeKeyConfig))
  const result = await verifyEnvelope(envelope, {
    now: provenAt,
    simulated: policy.allowSimulated === true ? 'any' : 'refuse',
    ...(deps.anchors === undefined ? {} : { anchors: deps.anchors }),
    requireCrl: policy.requireCrl === true,
    trust: { bundle: trust.bundle, rootJwk },
    live: {
      nonce,
      tlsSpkiSha256,
      hpkeKeyConfigSha256,
      ...(maxAge === undefined ? {} : { maxAgeSeconds: maxAge }),
    },
  })
  const logged = checkLog(envelope, trust, logPolicy, provenAt)
  const checks = [...trust.checks, ...result.checks, ...logged.checks]
  if (!verdict(checks).ok) throw new AttestationRefused(checks)
  return {
    tlsSpkiSha256: envelope.tls_spki_sha256,
    provenAt,
    expiresAt: Math.min(result.endsAt, logged.endsAt),
    simulated: result.chain?.simulated === true,
    checks,
    envelope,
    bundle: trust.bundle,
    bundleJws: trust.jws,
    hpkeKeyConfig,
    notes: [...result.notes, ...logged.notes],
  }
}

/**
 * Checks that the release is in the public log. Under a policy that does not require it, failures are only reported as
 * notes, and the log's entries do not limit how long the proof is valid.
 */
function checkLog(
  { workload_identity_manifest_jws: manifestJws }: Envelope,
  { jws: trustBundleJws, logProofs }: NewestTrust,
  policy: LogPolicy | undefined,
  now: number,
): LoggedResult & { readonly notes: readonly string[] } {
  if (policy === undefined) return { checks: [], notes: [], endsAt: Infinity }
  const logged = checkLogged({ trustBundleJws, manifestJws }, logProofs, policy, now)
  if (policy.required) return { ...logged, notes: [] }
  const notes = logged.checks.map(({ name, detail }) => `${name}: ${detail}`)
  return { checks: [], notes, endsAt: Infinity }
}
