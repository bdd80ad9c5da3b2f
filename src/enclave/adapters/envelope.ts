import { fromUtf8, utf8 } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { es256JwkSchema } from '../../protocol/jwk.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { publishedTrustBundleSchema } from '../../protocol/trust-bundle.ts'
import { milliseconds } from '../../verify/clock.ts'
import { verifyEnvelope, type EnvelopeResult } from '../../verify/envelope.ts'
import { readEnvelope } from '../../verify/envelope-hardware.ts'
import type { Trust } from '../../verify/manifest.ts'
import { verifyTrustBundle, type SeenBundle } from '../../verify/trust-bundle.ts'
import {
  simulatedPolicy,
  type Adapter,
  type EvidenceSubject,
  type EvidenceTools,
} from './adapter.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { demandChecks } from './demand-checks.ts'
import { summarizeSnp } from '../snp/snp-summary.ts'
import type { VerifiedEvidence } from './verified-evidence.ts'

const MAX_ENVELOPE_BYTES = 262_144
const MAX_BUNDLE_BYTES = 1_048_576

type Subject = EvidenceSubject<'envelope'>

/**
 * Another host that publishes `service.attestation/v1`, this router included: envelope for our nonce -> its trust
 * bundle under the pinned root -> both together, with the key of the connection that the envelope came over. Its
 * hosts sign their own certificates, so the pin alone decides.
 */
export const envelopeAdapter: Adapter<'envelope'> = {
  webPki: false,
  open(subject, tools) {
    let lastSeen: SeenBundle | undefined
    return async () => {
      const nonce = tools.newNonce()
      const { body, tlsSpkiSha256 } = await fetchDocument(
        subject,
        tools,
        `attestation?nonce=${nonce}`,
      )
      const bundle = await fetchBundle(subject, tools, lastSeen)
      const envelope = readEnvelope(body)
      const bound = nonceFor(subject, envelope, nonce)
      const options = { now: tools.now(), simulated: simulatedPolicy(subject, tools) }
      const maxAgeSeconds = subject.policy.max_age_seconds
      const result = await verifyEnvelope(envelope, {
        ...options,
        trust: bundle.trust,
        live: { nonce: bound, tlsSpkiSha256, maxAgeSeconds },
      })
      demandChecks(result.checks)
      lastSeen = bundle.seen
      const text = fromUtf8(body)
      const nonceBound = bound !== null
      return describe({ envelope, result, bundle, text, nonceBound, subject, now: tools.now() })
    }
  },
}

/** A report that binds a nonce must bind ours; whether one that binds none will do, the operator says. */
function nonceFor({ policy }: Subject, envelope: Envelope, nonce: string): string | null {
  const binds = envelope.report_data_binding !== undefined
  return binds || policy.nonce === 'required' ? nonce : null
}

function fetchDocument({ baseUrl }: Subject, { observedFetch }: EvidenceTools, path: string) {
  const url = new URL(`/${path}`, baseUrl).href
  return observedFetch({ url, maxBytes: MAX_ENVELOPE_BYTES, webPki: false })
}

interface AcceptedBundle {
  readonly trust: Trust
  readonly jws: string
  readonly seen: SeenBundle | undefined
}

/** The bundle comes from the provider's own origin; no address that the envelope names is ever asked. */
async function fetchBundle(
  { baseUrl, policy, mode }: Subject,
  { observedFetch, now }: EvidenceTools,
  lastSeen: SeenBundle | undefined,
): Promise<AcceptedBundle> {
  const url = new URL('/.well-known/trust.json', baseUrl).href
  const { body } = await observedFetch({ url, maxBytes: MAX_BUNDLE_BYTES, webPki: false })
  const document = 'published trust bundle'
  const published = parseStrictJson(body, document)
  const { trust_bundle_jws: jws } = readDocument(publishedTrustBundleSchema, published, document)
  const rootJwk = readDocument(es256JwkSchema, policy.root_key, 'release root key')
  const environments = mode === 'local' ? [...policy.environments, 'local'] : policy.environments
  const result = await verifyTrustBundle(jws, rootJwk, { now: now(), environments, lastSeen })
  demandChecks(result.checks)
  if (result.bundle === undefined) throw new EvidenceRefused('trust_bundle')
  return { trust: { bundle: result.bundle, rootJwk }, jws, seen: result.seen }
}

interface Accepted {
  readonly envelope: Envelope
  readonly result: EnvelopeResult
  readonly bundle: AcceptedBundle
  readonly text: string
  readonly nonceBound: boolean
  readonly subject: Subject
  readonly now: number
}

async function describe(accepted: Accepted): Promise<VerifiedEvidence> {
  const { envelope, result, bundle, text, subject, now } = accepted
  if (result.report === undefined || result.chain === undefined)
    throw new EvidenceRefused('hardware')
  const { measurement, ...summary } = summarizeSnp(result.report)
  const maxAge = Math.min(subject.policy.max_age_seconds, envelope.max_age_seconds)
  const ends = Math.min(
    milliseconds(envelope.issued_at) + maxAge * 1000,
    milliseconds(bundle.trust.bundle.expires_at),
  )
  return {
    verified: true,
    verification_mode: 'snp-envelope',
    attestation_strength: result.chain.simulated ? 'simulated' : 'hardware',
    binding: { tls_spki_sha256: envelope.tls_spki_sha256 },
    verified_at: Math.floor(now / 1000),
    expires_at: Math.floor(ends / 1000),
    evidence_digest: await sha256Hex(text),
    evidence_summary: {
      ...summary,
      nonce_bound: accepted.nonceBound,
      workload: envelope.workload,
      workload_version: result.manifest?.version ?? null,
      environment: bundle.trust.bundle.environment,
      trust_bundle_version: bundle.trust.bundle.version,
      envelope_issued_at: envelope.issued_at,
    },
    evidence_raw: utf8(text),
    claims: {
      tee: 'sev-snp',
      measurement,
      workload_identity_tag: envelope.workload_identity_tag,
      workload_identity_manifest_jws: envelope.workload_identity_manifest_jws,
      trust_bundle_url: envelope.trust_bundle_url,
      trust_bundle_jws: bundle.jws,
    },
  }
}
