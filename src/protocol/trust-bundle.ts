import * as z from 'zod'
import { es256JwkSchema } from './jwk.ts'
import { guestPolicyMembers } from './snp-policy.ts'
import { timestampSchema } from './timestamp.ts'

/**
 * The trust bundle: the statement of the offline release root about what relying parties may accept. Signed as a
 * compact JWS by that root and published as `{"trust_bundle_jws": "<compact JWS>"}`.
 */

export const TRUST_BUNDLE_SCHEMA = 'trust-bundle/v1'

/** `typ` of the JWS header; prevents a manifest or a receipt from being accepted as a bundle. */
export const TRUST_BUNDLE_TYP = 'trust-bundle+jwt'

const hex = (bytes: number) =>
  z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `not ${2 * bytes} lowercase hex digits`)
const spl = z.int().min(0).max(255)
const versionNumbers = (parts: number) =>
  z
    .string()
    .regex(new RegExp(`^\\d{1,3}(\\.\\d{1,3}){${parts - 1}}$`), `not ${parts} numbers with dots`)

/** Minimum security patch levels: they are compared by component, never as one number. */
const tcbSchema = z.strictObject({ bootloader: spl, tee: spl, snp: spl, microcode: spl })
export const tcbFloorSchema = z.strictObject({
  milan: tcbSchema.optional(),
  genoa: tcbSchema.optional(),
  turin: tcbSchema.extend({ fmc: spl }).optional(),
})

const snpPolicySchema = z.strictObject({
  min_report_version: z.int().min(2).max(5).default(3),
  allowed_vmpl: z.array(z.int().min(0).max(3)).min(1).default([0]),
  ...guestPolicyMembers,
  /** Lowest `major.minor` of the firmware ABI that the guest policy may require. */
  min_policy_abi: versionNumbers(2).default('0.0'),
  /** Bit numbers of the launch and current mitigation vectors (report version 5). */
  required_mitigation_bits: z.array(z.int().min(0).max(63)).default([]),
  /** Cloud providers whose VLEKs are accepted, as named in their certificates; empty: no VLEK. */
  allowed_vlek_csp_ids: z.array(z.string().min(1)).default([]),
  allow_masked_chip_id: z.boolean().default(false),
  allow_provisional_firmware: z.boolean().default(false),
  /** If present, the ID block must have been signed by one of these keys (SHA-384). */
  allowed_id_key_digests: z.array(hex(48)).min(1).optional(),
  allowed_author_key_digests: z.array(hex(48)).min(1).optional(),
})

/** A measurement is accepted for exactly this workload and release, in no other combination. */
const allowedMeasurementSchema = z.strictObject({
  measurement: hex(48),
  workload: z.string().min(1),
  workload_identity_tag: hex(32),
  host_data: hex(32).optional(),
  not_after: timestampSchema.optional(),
})

const delegatedKeySchema = z.strictObject({
  jwk: es256JwkSchema,
  not_before: timestampSchema,
  not_after: timestampSchema,
})

/** A revoked value, alone or with the time from which it must not be trusted. */
const revocation = (value: z.ZodString) =>
  z.union([value, z.strictObject({ value, since: timestampSchema.optional() })])

const revokedSchema = z.strictObject({
  measurements: z.array(revocation(hex(48))).default([]),
  identity_tags: z.array(revocation(hex(32))).default([]),
  /** RFC 7638 thumbprints of delegated keys and of receipt keys. */
  keys: z.array(revocation(z.string())).default([]),
})

export const trustBundleSchema = z.looseObject({
  schema: z.literal(TRUST_BUNDLE_SCHEMA),
  /** Never decreases. */
  version: z.int().min(1),
  environment: z.string().min(1),
  issued_at: timestampSchema,
  not_before: timestampSchema,
  expires_at: timestampSchema,
  allowed_measurements: z.array(allowedMeasurementSchema),
  allowed_identity_tags: z.array(hex(32)),
  tcb_floor: tcbFloorSchema,
  launch_tcb_floor: tcbFloorSchema.optional(),
  min_guest_svn: z.int().min(0).max(0xffff_ffff).default(0),
  /** Lowest committed firmware, `major.minor.build`. */
  min_firmware: versionNumbers(3).default('0.0.0'),
  snp_policy: snpPolicySchema.prefault({}),
  revoked: revokedSchema.prefault({}),
  /** Without `workload_manifest` (a legacy bundle) the release root signs the manifest itself. */
  delegated_keys: z.looseObject({ workload_manifest: delegatedKeySchema.optional() }).default({}),
})

/** More than fifty hashes and sixty-four signatures need. */
const MAX_LOG_PROOF_CHARS = 16_384

/** Proofs that documents of a release are in a public log (c2sp.org/tlog-proof). */
export const logProofsSchema = z.object({
  trust_bundle: z.string().max(MAX_LOG_PROOF_CHARS).optional(),
  manifest: z.string().max(MAX_LOG_PROOF_CHARS).optional(),
})

/** The document served at the trust bundle's address. The proofs are about the bundle, so they are outside it. */
export const publishedTrustBundleSchema = z.looseObject({
  trust_bundle_jws: z.string(),
  log_proofs: logProofsSchema.optional(),
})

export type LogProofs = z.output<typeof logProofsSchema>

export type TrustBundle = z.output<typeof trustBundleSchema>
export type TrustBundleInput = z.input<typeof trustBundleSchema>
export type Revocation = z.output<ReturnType<typeof revocation>>
export type TcbFloors = z.output<typeof tcbFloorSchema>
