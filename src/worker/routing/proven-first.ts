import { strengthRank } from '../../protocol/constraints.ts'
import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { PlannedAttempt } from './plan.ts'

/**
 * The attempts whose providers are verified now. The daemon would refuse to call any other, and each refusal would use up
 * one of the request's attempts. If none is left, all are kept, so that the daemon reports the reason.
 * @param now ms since the epoch
 */
export function provenAttempts(
  attempts: readonly PlannedAttempt[],
  proofs: readonly ProviderProof[],
  now: number,
): readonly PlannedAttempt[] {
  const byProvider = byName(proofs)
  const proven = attempts.filter(({ route: { provider } }) => {
    if (provider.adapter === 'none') return true
    const { state, expires_at: end } = byProvider.get(provider.name) ?? {}
    return state === 'verified' && Date.parse(end ?? '') > now
  })
  return proven.length === 0 ? attempts : proven
}

/** Sorts the attempts of each entry of the request by strength of attestation, strongest first; stable. */
export function strongestFirst(
  attempts: readonly PlannedAttempt[],
  proofs: readonly ProviderProof[],
): readonly PlannedAttempt[] {
  const byProvider = byName(proofs)
  const rankOf = ({ route: { provider } }: PlannedAttempt): number => {
    const proof = provider.adapter === 'none' ? undefined : byProvider.get(provider.name)
    return strengthRank(proof?.attestation_strength ?? 'none')
  }
  return attempts.toSorted((a, b) => a.entry - b.entry || rankOf(b) - rankOf(a))
}

/** Whether the choice among these attempts depends on verification status. */
export function dependsOnProof(attempts: readonly PlannedAttempt[]): boolean {
  return attempts.length > 1 && attempts.some(({ route }) => route.provider.adapter !== 'none')
}

function byName(proofs: readonly ProviderProof[]): ReadonlyMap<string, ProviderProof> {
  return new Map(proofs.map((proof) => [proof.provider, proof]))
}
