import { fromUtf8 } from '../../protocol/bytes.ts'
import { INLINE_EVIDENCE_BYTES } from '../../protocol/receipt.ts'
import type { VerifiedEvidence } from '../adapters/verified-evidence.ts'
import { isProven } from '../../verify/providers/judged-evidence.ts'
import type { ProvenHop } from '../proofs.ts'

/** The hop of a provider that is called without attestation. */
export const UNATTESTED: ProvenHop = {
  block: {
    tee: 'unknown',
    verified: false,
    verification_mode: 'none',
    attestation_strength: 'none',
  },
  evidenceRefs: [],
}

/** Describes, in the format of receipts, what the evidence proves about the provider. */
export function describeInferenceHop(evidence: VerifiedEvidence): ProvenHop {
  const { evidence_raw: raw, evidence_digest: sha256 } = evidence
  const inline = raw.length <= INLINE_EVIDENCE_BYTES
  return {
    block: {
      ...evidence.claims,
      verified: isProven(evidence),
      verification_mode: evidence.verification_mode,
      verified_at: evidence.verified_at,
      attestation_strength: evidence.attestation_strength,
      evidence_summary: {
        ...evidence.evidence_summary,
        tls_spki_sha256: evidence.binding.tls_spki_sha256,
        evidence_sha256: sha256,
        evidence_expires_at: evidence.expires_at,
      },
      evidence_raw: inline ? JSON.parse(fromUtf8(raw)) : { sha256, bytes: raw.length },
    },
    evidenceRefs: inline ? [] : [sha256],
    messageKey: evidence.messageKey,
  }
}
