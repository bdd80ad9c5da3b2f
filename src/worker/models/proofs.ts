import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { Route } from '../provider/route.ts'

/** The verification status of the provider of a route. */
export interface RouteProof {
  /** The concrete route. */
  readonly route: string
  /** The kind of evidence: its adapter. */
  readonly kind: string
  readonly state: ProviderProof['state']
  /** Null where no evidence is verified. */
  readonly strength: string | null
  /** Seconds since the evidence was verified. */
  readonly age_seconds: number | null
  /** RFC 3339. */
  readonly expires_at: string | null
}

/** The status of each route whose provider is attested, in the order of the routes. `now` in ms since the epoch. */
export function proofsOf(
  routes: readonly Route[],
  proofs: readonly ProviderProof[],
  now: number,
): readonly RouteProof[] {
  return routes
    .filter(({ provider }) => provider.adapter !== 'none')
    .map(({ id, provider }) => {
      const proof = proofs.find((one) => one.provider === provider.name)
      const verifiedAt = Date.parse(proof?.verified_at ?? '')
      return {
        route: id,
        kind: provider.adapter,
        state: proof?.state ?? 'pending',
        strength: proof?.attestation_strength ?? null,
        age_seconds: Number.isNaN(verifiedAt)
          ? null
          : Math.max(0, Math.floor((now - verifiedAt) / 1000)),
        expires_at: proof?.expires_at ?? null,
      }
    })
}
