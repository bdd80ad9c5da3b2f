import { parseCompactJws } from '../../protocol/compact-jws.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { trustBundleSchema } from '../../protocol/trust-bundle.ts'
import type { Check } from '../../verify/check.ts'
import { verifyEnvelope } from '../../verify/envelope.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import { verifyTrustBundle, type AcceptedBundle } from '../../verify/trust-bundle.ts'
import type { Release } from '../release/release.ts'
import type { ServedEnvelope } from './build-envelope.ts'

/** The result of the daemon's own verification of its envelope. */
export interface SelfCheck {
  readonly verified: boolean
  /** Failed checks, as `name: detail`. */
  readonly failed: readonly string[]
  /** Unix seconds. */
  readonly verifiedAt: number
  /** The bundle, where it was verified; no older one may replace it later. */
  readonly accepted: AcceptedBundle | undefined
}

export interface SelfCheckInputs {
  readonly release: Release
  readonly simulated: SimulatedPolicy
  /** The last bundle that verified. */
  readonly lastAccepted: AcceptedBundle | undefined
  /** Milliseconds. */
  readonly now: number
}

/**
 * Verifies the envelope like a client that holds the release root: the bundle, then the report, the release and the
 * binding of the receipt key.
 * @throws MalformedEvidence when the root key, the bundle, the manifest or the envelope cannot be parsed
 */
export async function checkOwnEnvelope(
  { envelope }: Pick<ServedEnvelope, 'envelope'>,
  { release, simulated, lastAccepted, now }: SelfCheckInputs,
): Promise<SelfCheck> {
  const { bundleJws, rootPublicJwk: rootJwk } = release
  const environments = [readEnvironment(bundleJws)]
  const trust = await verifyTrustBundle(bundleJws, rootJwk, { now, environments, lastAccepted })
  if (trust.bundle === undefined) return judged(trust.checks, now, undefined)
  // This process has just captured the envelope, so its own values are the live ones.
  const live = { nonce: null, tlsSpkiSha256: envelope.tls_spki_sha256 }
  const result = await verifyEnvelope(envelope, {
    now,
    simulated,
    trust: { bundle: trust.bundle, rootJwk },
    live,
  })
  return judged(result.checks, now, trust.accepted)
}

/** The environment of the daemon's own release; each client decides whether it accepts that environment. */
function readEnvironment(bundleJws: string): string {
  const document = 'trust bundle'
  const { payload } = parseCompactJws(bundleJws, document)
  return readDocument(trustBundleSchema, parseStrictJson(payload, document), document).environment
}

function judged(
  checks: readonly Check[],
  now: number,
  accepted: AcceptedBundle | undefined,
): SelfCheck {
  const failed = checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
  return { verified: failed.length === 0, failed, verifiedAt: Math.floor(now / 1000), accepted }
}
