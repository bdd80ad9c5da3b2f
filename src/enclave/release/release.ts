import type { LogProofs } from '../../protocol/trust-bundle.ts'
import type { PublicSigningJwk } from './signing-key.ts'

/** The running release. */
export interface Release {
  readonly rootPublicJwk: PublicSigningJwk
  readonly bundleJws: string
  readonly manifestJws: string
  /** SHA-256 of the manifest's JWS text, lowercase hex. */
  readonly identityTag: string
  /** Proofs that bundle and manifest were logged, where they were published with the bundle. */
  readonly logProofs?: LogProofs | undefined
}
