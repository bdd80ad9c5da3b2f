import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import type { JudgedEvidence } from '../../verify/providers/judged-evidence.ts'

/** The result of every adapter. Members are named as in receipts; times are Unix seconds. */
export interface VerifiedEvidence extends Omit<JudgedEvidence, 'endsAt'> {
  readonly verified: true
  readonly verified_at: number
  readonly expires_at: number
  /** SHA-256 of `evidence_raw`, lowercase hex. */
  readonly evidence_digest: string
  /** JSON; everything needed to judge the evidence again without the provider. */
  readonly evidence_raw: Bytes
}

export interface EvidenceTimes {
  /** Milliseconds. */
  readonly now: number
  readonly maxAgeSeconds: number
}

/**
 * Completes judged evidence with its raw text. It expires at the policy's maximum age, or earlier, when something that
 * the verdict rests on ends.
 */
export async function sealEvidence(
  { endsAt, ...judged }: JudgedEvidence,
  raw: string,
  { now, maxAgeSeconds }: EvidenceTimes,
): Promise<VerifiedEvidence> {
  const verifiedAt = Math.floor(now / 1000)
  return {
    ...judged,
    verified: true,
    verified_at: verifiedAt,
    expires_at: Math.min(verifiedAt + maxAgeSeconds, Math.floor(endsAt / 1000)),
    evidence_digest: await sha256Hex(raw),
    evidence_raw: utf8(raw),
  }
}

const SPKI_SHA256 = /^[0-9a-f]{64}$/

/**
 * The last check of every adapter's result: evidence that cannot be enforced on a connection is rejected, whatever it
 * claims.
 * @throws EvidenceRefused `no_binding` without a key or a verification, `expired`, or `malformed` when the digest is
 *   wrong
 */
export async function admitEvidence(
  evidence: VerifiedEvidence,
  now: number,
): Promise<VerifiedEvidence> {
  const { binding, verified, expires_at: end, evidence_digest: digest } = evidence
  const bound = SPKI_SHA256.test(binding.tls_spki_sha256)
  if (!bound || !verified) throw new EvidenceRefused('no_binding')
  if (!(end * 1000 > now)) throw new EvidenceRefused('expired')
  if ((await sha256Hex(evidence.evidence_raw)) !== digest) throw new EvidenceRefused('malformed')
  return evidence
}
