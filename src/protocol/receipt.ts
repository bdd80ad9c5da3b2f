import * as z from 'zod'
import { hex32 } from './hex-schema.ts'
import { constraintsSchema } from './constraints.ts'
import { unixSeconds } from './timestamp.ts'

/**
 * The claims of a receipt ("Receipts" in docs/api.md) and the attestation block of router and provider.
 * Digests are lowercase hex SHA-256, times are Unix seconds.
 */

/** Evidence up to this size, in bytes of JSON, is included in the receipt. */
export const INLINE_EVIDENCE_BYTES = 8192

/** Larger evidence is referred to by digest (docs/receipts.md). */
const evidenceReference = z.object({ sha256: hex32, bytes: z.int().min(0) })

export const attestationBlockSchema = z.looseObject({
  tee: z.string().optional(),
  measurement: z.string().optional(),
  workload_identity_tag: hex32.optional(),
  workload_identity_manifest_jws: z.string().optional(),
  trust_bundle_url: z.string().optional(),
  trust_bundle_jws: z.string().optional(),
  verified: z.boolean(),
  verification_mode: z.string(),
  verified_at: unixSeconds.optional(),
  attestation_strength: z.string(),
  evidence_summary: z.record(z.string(), z.json()).optional(),
  message_attestation: z.record(z.string(), z.json()).optional(),
  evidence_raw: z.union([evidenceReference, z.record(z.string(), z.json())]).optional(),
})

/** The endpoints for which receipts are issued. */
export const RECEIPT_ENDPOINTS = [
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/embeddings',
  '/v1/audio/transcriptions',
] as const

export type ReceiptEndpoint = (typeof RECEIPT_ENDPOINTS)[number]

/** The receipt endpoint that a path ends with, ignoring trailing slashes, as the router does. */
export function receiptEndpointOf(path: string): ReceiptEndpoint | undefined {
  const plain = path.replace(/\/+$/, '')
  return RECEIPT_ENDPOINTS.find((endpoint) => plain.endsWith(endpoint))
}

/** The worker's part of the claims; the daemon adds both hops and the key context, and signs. */
export const exchangeClaimsSchema = z.object({
  jti: z.uuid(),
  iat: unixSeconds,
  /** The endpoint that was called; the client's digests are over the bytes of its format. */
  endpoint: z.enum(RECEIPT_ENDPOINTS),
  requested_route: z.string(),
  routed_model: z.string(),
  prompt_tokens: z.int().min(0),
  completion_tokens: z.int().min(0),
  request_digest: hex32,
  response_digest: hex32,
  /**
   * Present where the provider's answer came with a content coding: the digest is over the bytes as sent (`encoded`) or
   * over the decoded bytes (`decoded`). Absent where both are the same.
   */
  response_digest_over: z.enum(['encoded', 'decoded']).optional(),
  digest_version: z.literal(1),
  failover: z.boolean(),
  client_request_digest: hex32,
  client_response_digest: hex32,
  /** The requirements of the caller and of its key on the provider; absent where there were none. */
  constraints: constraintsSchema.optional(),
})

export const receiptClaimsSchema = z.looseObject({
  ...exchangeClaimsSchema.partial({ client_request_digest: true, client_response_digest: true })
    .shape,
  /**
   * Any text, so that a verifier can name an endpoint that it does not know. Absent in receipts of earlier versions.
   */
  endpoint: z.string().optional(),
  /**
   * SHA-256 of the router's configuration under which the exchange began, as the router's evidence binds it. Absent in
   * receipts of earlier versions.
   */
  configuration_sha256: hex32.optional(),
  router_attestation: attestationBlockSchema,
  inference_attestation: attestationBlockSchema.optional(),
  /** Named `inference_attestation` in receipts of earlier versions. */
  provider_attestation: attestationBlockSchema.optional(),
  receipt_signature: z.object({
    kid: z.string(),
    alg: z.literal('ES256'),
    verified: z.boolean(),
    verification_mode: z.string(),
    verified_at: unixSeconds,
  }),
})

export type AttestationBlock = z.output<typeof attestationBlockSchema>
export type ExchangeClaims = z.output<typeof exchangeClaimsSchema>
export type ReceiptClaims = z.output<typeof receiptClaimsSchema>
