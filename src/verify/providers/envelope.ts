import { fromUtf8, toHex, type Bytes } from '../../protocol/bytes.ts'
import { isSameJson } from '../../protocol/canonical-json.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { es256JwkSchema, type Es256Jwk } from '../../protocol/jwk.ts'
import { providerPolicySchema, type PolicyOf } from '../../protocol/provider-policy.ts'
import { readDocument } from '../../protocol/read-document.ts'
import type { AttestationBlock } from '../../protocol/receipt.ts'
import type { TrustBundle } from '../../protocol/trust-bundle.ts'
import { verifyEnvelope, type EnvelopeResult } from '../envelope.ts'
import { readEnvelope } from '../envelope-hardware.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import type { KnownBundle } from '../newest-bundle.ts'
import type { SnpReport } from '../snp/report.ts'
import { summarizeSnp } from '../snp/snp-summary.ts'
import { verifyTrustBundle, type AcceptedBundle } from '../trust-bundle.ts'
import { requireChecks } from './require-checks.ts'
import type { JudgedEvidence, JudgeOptions } from './judged-evidence.ts'
import { requireLaunchBinding } from './launch-binding.ts'

/** Everything needed to judge a host with an attestation envelope. */
export interface EnvelopeEvidence {
  /** The served envelope, with AMD's revocation list replaced where a newer one was found. */
  readonly envelope: string
  /** The trust bundle that was published with it. */
  readonly trust_bundle_jws: string
  /** The nonce that the report must bind, where it binds any. */
  readonly nonce: string
  /** The TLS key of the peer that served the envelope. */
  readonly tls_spki_sha256: string
}

/** Revocations that became known after the evidence was made. */
export interface LaterRevocations {
  /** The newest known bundle under the policy's root, for its revocations. It must not contradict the evidence's own. */
  readonly newest?: KnownBundle | undefined
  /** Accepts evidence from before the `since` of its revocation. */
  readonly acceptBeforeRevocation?: boolean | undefined
}

export interface EnvelopeJudgeOptions
  extends Pick<JudgeOptions, 'now' | 'simulated' | 'anchors'>, LaterRevocations {
  /** The newest bundle of this provider that was accepted before. */
  readonly lastAccepted?: AcceptedBundle | undefined
  /** Environments to accept besides those of the policy. */
  readonly environments?: readonly string[]
}

export interface JudgedEnvelope extends JudgedEvidence {
  readonly accepted: AcceptedBundle | undefined
}

type Policy = PolicyOf<'envelope'>

/**
 * Judges another host that publishes `service.attestation/v1`: the trust bundle under the pinned root, the envelope
 * under that bundle, nonce, age and the connection's key, and HOST_DATA.
 * @throws EvidenceRefused when a check fails or the policy is not met
 * @throws MalformedEvidence when the envelope or the bundle cannot be parsed
 */
export async function judgeEnvelope(
  evidence: EnvelopeEvidence,
  policy: Policy,
  options: EnvelopeJudgeOptions,
): Promise<JudgedEnvelope> {
  const { now, simulated, acceptBeforeRevocation } = options
  const {
    bundle,
    rootJwk,
    accepted,
    checks: bundleChecks,
  } = await judgeBundle(evidence.trust_bundle_jws, policy, options)
  const newest = withoutFork(bundle, options.newest)
  const envelope = readEnvelope(evidence.envelope)
  const nonce = expectedNonce(evidence, policy, envelope)
  const result = await verifyEnvelope(envelope, {
    now,
    simulated,
    ...(options.anchors && { anchors: options.anchors }),
    trust: { bundle, rootJwk, newest, acceptBeforeRevocation },
    // The provider's root chooses the names of its workloads.
    workload: null,
    allowedHostData: policy.allowed_host_data,
    live: {
      tlsSpkiSha256: evidence.tls_spki_sha256,
      maxAgeSeconds: policy.max_age_seconds,
      nonce,
    },
  })
  requireChecks(result.checks)
  const { report, chain, checks } = result
  if (report === undefined || chain === undefined) throw new EvidenceRefused('hardware')
  // A simulated root has no revocation list.
  if (!chain.simulated && !checks.some(({ name }) => name === 'revocation')) {
    throw new EvidenceRefused('hardware', ['revocation'])
  }
  requireLaunchBinding(
    'host_data',
    report.hostData,
    acceptedHostData(envelope, report, bundle, policy),
  )
  return {
    ...describe({ envelope, result, report, bundle, nonce, jws: evidence.trust_bundle_jws }),
    checks: [...[...bundleChecks, ...checks].map(({ name }) => name), 'host_data'],
    endsAt: result.endsAt,
    accepted,
    onRecord: result.disregarded,
  }
}

/**
 * Like `judgeEnvelope`, for an envelope that was stored with a receipt, whose block records what the router saw with
 * it.
 * @throws EvidenceRefused when a check fails or the policy is not met
 * @throws MalformedEvidence when the envelope or the bundle cannot be parsed
 */
export function judgeRecordedEnvelope(
  { raw, block }: { readonly raw: Bytes; readonly block: AttestationBlock },
  policy: Policy,
  options: EnvelopeJudgeOptions,
): Promise<JudgedEnvelope> {
  const envelope = fromUtf8(raw)
  const spki = block.evidence_summary?.['tls_spki_sha256']
  return judgeEnvelope(
    {
      envelope,
      trust_bundle_jws: block.trust_bundle_jws ?? '',
      // Who chose the nonce is no longer known, only that there was one.
      nonce: readEnvelope(envelope).report_data_binding?.nonce ?? '',
      tls_spki_sha256: typeof spki === 'string' ? spki : '',
    },
    policy,
    options,
  )
}

/** Builds the policy for a release root, with defaults for everything else. */
export function releaseRootPolicy(
  rootJwk: Es256Jwk,
  more: Partial<Omit<Policy, 'adapter' | 'root_key'>>,
): Policy {
  const policy = readDocument(
    providerPolicySchema,
    { adapter: 'envelope', root_key: { ...rootJwk }, ...more },
    'provider policy',
  )
  if (policy.adapter !== 'envelope') throw new TypeError('the policy is of another adapter')
  return policy
}

async function judgeBundle(
  jws: string,
  policy: Policy,
  { now, lastAccepted, environments = [] }: EnvelopeJudgeOptions,
) {
  const rootJwk = readDocument(es256JwkSchema, policy.root_key, 'release root key')
  const result = await verifyTrustBundle(jws, rootJwk, {
    now,
    environments: [...policy.environments, ...environments],
    lastAccepted,
  })
  requireChecks(result.checks)
  if (result.bundle === undefined) throw new EvidenceRefused('trust_bundle')
  const { bundle, accepted, checks } = result
  return { bundle, rootJwk, accepted, checks }
}

/**
 * Refuses forked bundles: a root that signs two bundles of one version shows different ones to different parties, and
 * may hide a revocation in one.
 */
function withoutFork(
  bundle: TrustBundle,
  newest: KnownBundle | undefined,
): TrustBundle | undefined {
  const isForked =
    newest === 'forked' || (newest?.version === bundle.version && !isSameJson(newest, bundle))
  if (isForked) throw new EvidenceRefused('trust_bundle', ['newest_bundle'])
  return newest
}

/**
 * The nonce that the report must bind. A report that binds any must bind this one; the policy decides whether a report
 * without a nonce is accepted.
 */
function expectedNonce(
  { nonce }: EnvelopeEvidence,
  policy: Policy,
  { report_data_binding: binding }: Envelope,
): string | null {
  return binding === undefined && policy.nonce === 'optional' ? null : nonce
}

/** The pinned values of HOST_DATA: those that the release root accepts for this guest, and those in the policy. */
function acceptedHostData(
  { workload, workload_identity_tag: tag }: Envelope,
  report: SnpReport,
  bundle: TrustBundle,
  policy: Policy,
): readonly string[] | undefined {
  const measurement = toHex(report.measurement)
  const byBundle = bundle.allowed_measurements.flatMap((entry) => {
    const ofGuest = entry.measurement === measurement && entry.workload === workload
    const { host_data: hostData } = entry
    return ofGuest && entry.workload_identity_tag === tag && hostData ? [hostData] : []
  })
  const byPolicy = policy.allowed_host_data ?? []
  return byBundle.length + byPolicy.length === 0 ? undefined : [...byBundle, ...byPolicy]
}

interface Accepted {
  readonly envelope: Envelope
  readonly result: EnvelopeResult
  readonly report: SnpReport
  readonly bundle: TrustBundle
  readonly nonce: string | null
  readonly jws: string
}

function describe({
  envelope,
  result,
  report,
  bundle,
  nonce,
  jws,
}: Accepted): Omit<JudgedEvidence, 'checks' | 'endsAt'> {
  const { measurement, ...summary } = summarizeSnp(report)
  return {
    verification_mode: 'snp-envelope',
    attestation_strength: result.chain?.simulated === false ? 'hardware' : 'simulated',
    binding: { tls_spki_sha256: envelope.tls_spki_sha256 },
    evidence_summary: {
      ...summary,
      nonce_bound: nonce !== null,
      workload: envelope.workload,
      workload_version: result.manifest?.version ?? null,
      environment: bundle.environment,
      trust_bundle_version: bundle.version,
      envelope_issued_at: envelope.issued_at,
    },
    claims: {
      tee: 'sev-snp',
      measurement,
      workload_identity_tag: envelope.workload_identity_tag,
      workload_identity_manifest_jws: envelope.workload_identity_manifest_jws,
      trust_bundle_url: envelope.trust_bundle_url,
      trust_bundle_jws: jws,
    },
  }
}
