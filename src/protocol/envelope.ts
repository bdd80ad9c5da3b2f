import * as z from 'zod'
import { isBase64Url32 } from './bytes.ts'
import { timestampSchema } from './timestamp.ts'

/** The attestation envelope ("Models and evidence" in docs/api.md). Unknown members are kept and ignored. */

export const ENVELOPE_SCHEMA = 'service.attestation/v1'

/** The logical name of this workload in envelopes and manifests. */
export const WORKLOAD = 'router'

/**
 * The versions of the statement bound by REPORT_DATA bytes 32..63. The label separates the digest from every other use
 * of SHA-256, and the versions from each other. Builders write version 2; verifiers accept both.
 */
export const REPORT_DATA_V1 = 'cmr/report-data/v1'
export const REPORT_DATA_V2 = 'cmr/report-data/v2'

/** One week: older evidence must be fetched again. */
const MAX_AGE_LIMIT_SECONDS = 604_800

const hex32 = z.string().regex(/^[0-9a-f]{64}$/, 'not 64 lowercase hex digits')

const hex32OrEmpty = z.union([z.literal(''), hex32])

const receiptKeyAndNonce = {
  receipt_key_thumbprint: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, 'not a base64url SHA-256')
    .refine(isBase64Url32, 'not canonical base64url'),
  nonce: hex32OrEmpty,
}

/** The pre-image of REPORT_DATA bytes 32..63: binds the receipt key, and the caller's nonce if there was one. */
export const reportDataBindingSchema = z.discriminatedUnion('label', [
  z.object({ label: z.literal(REPORT_DATA_V1), ...receiptKeyAndNonce }),
  z.object({
    label: z.literal(REPORT_DATA_V2),
    ...receiptKeyAndNonce,
    /** SHA-256 of the HPKE key configuration that requests may be encrypted to; empty where none is served. */
    hpke_key_config_sha256: hex32OrEmpty,
    /** SHA-256 of the exact bytes of the configuration file in effect. */
    configuration_sha256: hex32,
  }),
])

export const envelopeSchema = z.looseObject({
  schema: z.literal(ENVELOPE_SCHEMA),
  workload: z.string().min(1),
  snp_report_b64: z.string(),
  vcek_chain_pem: z.string(),
  /**
   * AMD's revocation list for the chain in DER, standard base64. Signed by the chain's root; absent where none was
   * available.
   */
  snp_crl_b64: z.string().optional(),
  tls_spki_sha256: hex32,
  workload_identity_tag: hex32,
  workload_identity_manifest_jws: z.string(),
  trust_bundle_url: z.string(),
  issued_at: timestampSchema,
  max_age_seconds: z.int().min(1).max(MAX_AGE_LIMIT_SECONDS),
  /** Absent in envelopes of other implementations, which bind no receipt key to the hardware. */
  report_data_binding: reportDataBindingSchema.optional(),
})

export type Envelope = z.output<typeof envelopeSchema>
export type ReportDataBinding = z.output<typeof reportDataBindingSchema>
