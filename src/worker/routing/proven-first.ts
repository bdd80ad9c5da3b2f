import { strengthRank } from '../../protocol/constraints.ts'
import type { ProviderProof } from '../../protocol/link.ts'
import type { PlannedAttempt } from './plan.ts'

/**
 * The attempts without those whose provider has no proof in force: the daemon would refuse to call it, and the refusal
 * would be one of the attempts that a request has. Where no other is left all stay, so that the daemon says why.
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

/** Within each entry of the request the strongest attestation first; equals stay as they were. */
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

/** Whether what is proven can make a difference to these attempts. */
export function dependsOnProof(attempts: readonly PlannedAttempt[]): boolean {
  return attempts.length > 1 && attempts.some(({ route }) => route.provider.adapter !== 'none')
}

function byName(proofs: readonly ProviderProof[]): ReadonlyMap<string, ProviderProof> {
  return new Map(proofs.map((proof) => [proof.provider, proof]))
}
