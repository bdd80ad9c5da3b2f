import * as z from 'zod'

/** How far the daemon has proven one provider, as the link and the admin interface say it. */
export const providerProofSchema = z.object({
  provider: z.string(),
  adapter: z.string(),
  state: z.enum(['verified', 'pending', 'failed', 'unattested']),
  reason: z.string().nullable(),
  verified_at: z.string().nullable(),
  expires_at: z.string().nullable(),
  /** The strength of the current evidence, and its SHA-256 in lowercase hex. */
  attestation_strength: z.string().nullable(),
  evidence_sha256: z.string().nullable(),
  /** Those of the evidence in force; where evidence was refused, those that failed. */
  checks: z.array(z.object({ name: z.string(), ok: z.boolean() })),
})

export type ProviderProof = z.output<typeof providerProofSchema>
