import * as z from 'zod'

/** The status of the daemon's proof of one provider, as shown by the link and the admin interface. */
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
  /** The checks of the evidence in effect; where evidence was refused, the failed ones. */
  checks: z.array(z.object({ name: z.string(), ok: z.boolean() })),
})

export type ProviderProof = z.output<typeof providerProofSchema>
