import { toHex, type Bytes } from '../protocol/bytes.ts'
import type { Envelope } from '../protocol/envelope.ts'
import type { Es256Jwk } from '../protocol/jwk.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'
import type { TrustBundle } from '../protocol/trust-bundle.ts'
import { firstFault, judge, type Check } from './check.ts'
import { verifyEnvelope, type EnvelopeResult } from './envelope.ts'
import { readEnvelope } from './envelope-hardware.ts'
import { findEvidence, type EvidenceBySha256 } from './hop-evidence.ts'
import type { SnpOptions } from './snp/verify-snp.ts'
import { verifyTrustBundle } from './trust-bundle.ts'

/** The operator whose past envelopes are accepted. */
export interface EnvelopeTrust {
  /** The release root of the operator of this host. */
  readonly rootJwk: Es256Jwk
  /** Environments whose bundles are accepted. */
  readonly environments: readonly string[]
  /** The newest known bundle under that root, for its revocations. */
  readonly newest?: TrustBundle | undefined
  readonly acceptBeforeRevocation?: boolean | undefined
}

/** `now` is the moment of the receipt, in milliseconds since 1970. */
export interface EnvelopeHopOptions extends Omit<SnpOptions, 'policy'> {
  readonly trust: EnvelopeTrust
  readonly evidence: EvidenceBySha256
}

export interface HopResult {
  readonly checks: readonly Check[]
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Whether the evidence is of a simulated platform, which was allowed. */
  readonly simulated: boolean
  /** Present where it could be parsed; its statements are proven only where all checks hold. */
  readonly envelope?: Envelope
}

/**
 * Verifies a hop of a receipt again from its envelope, completely and as of `options.now`: the evidence, the bundle,
 * then chain, report and manifest, then the block's statements. A receipt is about the past, so the envelope need not
 * be fresh. Evidence that is missing, changed, unreadable or of another kind is a failed check.
 */
export async function checkEnvelopeHop(
  block: AttestationBlock,
  options: EnvelopeHopOptions,
): Promise<HopResult> {
  const found = await findEvidence(block, options.evidence)
  if (found.bytes === undefined) return { checks: [found.check], notes: [], simulated: false }
  try {
    const envelope = readEnvelope(found.bytes)
    const again = await verifyAgain(block, envelope, options)
    const consistent = checkConsistent(block, envelope, again.report?.measurement)
    const simulated = again.chain?.simulated === true
    return { ...again, checks: [found.check, consistent, ...again.checks], simulated, envelope }
  } catch (error) {
    if (!(error instanceof MalformedEvidence)) throw error
    return { checks: [judge('hop_evidence', error.message, '')], notes: [], simulated: false }
  }
}

type JudgedEnvelope = Pick<EnvelopeResult, 'checks' | 'notes' | 'report' | 'chain'>

async function verifyAgain(
  block: AttestationBlock,
  envelope: Envelope,
  { trust, ...snp }: EnvelopeHopOptions,
): Promise<JudgedEnvelope> {
  const { rootJwk, environments, ...revocations } = trust
  const dates = { now: snp.now, environments }
  const judged = await verifyTrustBundle(block.trust_bundle_jws ?? '', rootJwk, dates)
  const { bundle, checks } = judged
  if (bundle === undefined) {
    return { checks, notes: ['not checked further, because its trust bundle is refused'] }
  }
  const result = await verifyEnvelope(envelope, {
    ...snp,
    trust: { bundle, rootJwk, ...revocations },
    live: 'past',
  })
  return { ...result, checks: [...checks, ...result.checks] }
}

function checkConsistent(
  block: AttestationBlock,
  envelope: Envelope,
  measured: Bytes | undefined,
): Check {
  const { workload_identity_tag: tag, workload_identity_manifest_jws: manifest } = envelope
  const measurement = measured && toHex(measured)
  const fault = firstFault(
    measurement !== undefined &&
      block.measurement !== measurement &&
      'the measurement is not that of the evidence',
    (block.workload_identity_tag ?? tag) !== tag && 'the identity tag is not that of the evidence',
    (block.workload_identity_manifest_jws ?? manifest) !== manifest &&
      'the manifest is not that of the evidence',
  )
  return judge('hop_consistent', fault, measurement ?? '')
}
