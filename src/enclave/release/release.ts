import type { LogProofs } from '../../protocol/trust-bundle.ts'
import type { PublicSigningJwk } from './signing-key.ts'

/** What a release is known by while the daemon runs. */
export interface Release {
  readonly rootPublicJwk: PublicSigningJwk
  readonly bundleJws: string
  readonly manifestJws: string
  /** SHA-256 of the manifest's JWS text, lowercase hex. */
  readonly identityTag: string
  /** What proves that bundle and manifest are public, where the published bundle came with it. */
  readonly logProofs?: LogProofs | undefined
}
