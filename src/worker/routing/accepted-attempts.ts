import { unmetConstraint, type Constraints } from '../../protocol/constraints.ts'
import type { ProviderProof } from '../../protocol/provider-proof.ts'
import { ApiError } from '../http/errors.ts'
import type { PlannedAttempt } from './plan.ts'

/**
 * The attempts whose providers meet the caller's constraints according to their current verification status, in unchanged
 * order. The daemon checks each again on the connection that it opens.
 * @param proofs of all providers, or none where the constraints need no evidence
 * @throws ApiError `attestation_not_accepted` when none is left
 */
export function acceptedAttempts(
  attempts: readonly PlannedAttempt[],
  constraints: Constraints,
  proofs: readonly ProviderProof[],
): readonly PlannedAttempt[] {
  const byProvider = new Map(proofs.map((proof) => [proof.provider, proof]))
  const accepted = attempts.filter(({ route: { provider } }) => {
    // Without an adapter, the provider is called without checking evidence, so its proof is ignored.
    const proof = provider.adapter === 'none' ? undefined : byProvider.get(provider.name)
    const peer = {
      provider: provider.name,
      strength: proof?.attestation_strength ?? 'none',
      evidenceSha256: proof?.evidence_sha256 ?? null,
    }
    return unmetConstraint(constraints, peer) === undefined
  })
  if (accepted.length > 0) return accepted
  throw notAccepted()
}

/** Whether the constraints can only be checked against evidence. */
export function needsProofs({ min = 'none', evidence_sha256: evidence }: Constraints): boolean {
  return min !== 'none' || evidence !== undefined
}

/** The answer where no provider meets the constraints; nothing of the request has left the router. */
export function notAccepted(): ApiError {
  const message =
    'No provider of the requested models has the attestation that this request, or its API key, requires.'
  return new ApiError('attestation_not_accepted', message, { param: 'attestation' })
}
