import type { VerifiedEvidence } from '../adapters/verified-evidence.ts'
import type { KnownHop, ProvenHop } from '../proofs.ts'
import { describeInferenceHop } from './inference-hop.ts'

/**
 * Maximum number of proofs kept per provider, so that a long exchange can be signed under the proof that it began with.
 * A proof lasts for minutes at least, an exchange for hours at most; evidence has up to about 300 KiB.
 */
const MAX_PER_PROVIDER = 64

/** Every verified proof that is recent enough for an exchange that ends now to refer to it. */
export class ProvenHops {
  readonly #byProvider = new Map<string, Map<string, { hop: ProvenHop; raw: Uint8Array }>>()

  add(provider: string, evidence: VerifiedEvidence): void {
    const kept = this.#byProvider.get(provider) ?? new Map()
    this.#byProvider.set(provider, kept)
    // Evidence that is verified again counts as new, so that the current one is never the oldest.
    kept.delete(evidence.evidence_digest)
    kept.set(evidence.evidence_digest, {
      hop: describeInferenceHop(evidence),
      raw: evidence.evidence_raw,
    })
    const [oldest] = kept.keys()
    if (kept.size > MAX_PER_PROVIDER) kept.delete(oldest)
  }

  find(provider: string, evidenceSha256: string): ProvenHop | undefined {
    return this.#byProvider.get(provider)?.get(evidenceSha256)?.hop
  }

  list(): KnownHop[] {
    return [...this.#byProvider].flatMap(([provider, kept]) =>
      [...kept].map(([evidenceSha256, { hop }]) => ({ provider, evidenceSha256, hop })),
    )
  }

  evidence(sha256: string): Uint8Array | undefined {
    for (const kept of this.#byProvider.values()) {
      const found = kept.get(sha256)
      if (found !== undefined) return found.raw
    }
    return undefined
  }
}
