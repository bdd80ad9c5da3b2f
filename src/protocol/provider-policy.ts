import * as z from 'zod'
import { guestPolicyMembers } from './snp-policy.ts'
import { timestampSchema } from './timestamp.ts'
import { tcbFloorSchema } from './trust-bundle.ts'

/**
 * What is demanded of a provider's evidence: `attestation` of a provider in the configuration file, and the same in
 * the file an auditor judges receipts under (docs/egress.md). Unknown keys are errors.
 */

const hex = (bytes: number) =>
  z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `${2 * bytes} lowercase hex digits`)
const jsonObject = z.record(z.string(), z.json())

const maxAge = z.int().min(60).max(604_800).default(3600)

const tcbStatuses = z.array(z.string()).min(1).default(['UpToDate'])

/** A launch digest of SEV-SNP, or MRTD, RTMR0, RTMR1 and RTMR2 of TDX one after the other. */
const measurement = z.union([hex(48), hex(192)])

/** Of the platform and of the way the guest was started; the guest itself is pinned by measurements. */
const tdxPolicySchema = z
  .strictObject({
    /** Bits that may be set: SEPT_VE_DISABLE, protection keys, key locker, performance counters. */
    allowed_td_attributes: hex(8)
      .refine((mask) => mask.endsWith('00'), 'the lowest byte opens the guest to its host')
      .default('80000000d0000000'),
    /** Bits that may be set: what the TDX module lets a guest have at most. */
    allowed_xfam: hex(8).default('000000000006dbe7'),
    /** SHA-384 of TDX modules; any that Intel rates well enough unless given. */
    allowed_mr_seam: z.array(hex(48)).min(1).optional(),
    /** Collateral older than this TCB recovery of Intel's is refused although it is in date. */
    min_tcb_evaluation_data_number: z.int().min(0).default(17),
    denied_advisories: z.array(z.string().regex(/^INTEL-SA-\d{5}$/)).default([]),
  })
  .prefault({})

/** Who must have signed a public build record: a workflow of a repository, run for a tag, as its issuer vouches. */
const buildIdentityMembers = {
  /** `owner/name` on GitHub. */
  repository: z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'not owner/name'),
  workflow: z
    .string()
    .regex(/^\.github\/workflows\/[\w.-]+\.ya?ml$/, 'not .github/workflows/<file>'),
  issuer: z.url({ protocol: /^https$/ }).default('https://token.actions.githubusercontent.com'),
  /** Records that the log took in earlier are refused. */
  not_before: timestampSchema.optional(),
}

const provenanceSchema = z.strictObject({
  ...buildIdentityMembers,
  /** Who vouches for the virtual hardware that guests are started on (TDX: MRTD and RTMR0). */
  platform: z.strictObject(buildIdentityMembers).optional(),
})

export type BuildIdentity = Omit<z.output<typeof provenanceSchema>, 'platform'>

const envelopePolicySchema = z.strictObject({
  adapter: z.literal('envelope'),
  root_key: jsonObject,
  /** Environments whose trust bundles are accepted; in local mode `local` is accepted besides. */
  environments: z.array(z.string()).min(1).default(['production']),
  /** `optional` also takes hosts whose reports bind no nonce. */
  nonce: z.enum(['required', 'optional']).default('required'),
  /** HOST_DATA to accept besides what the trust bundle names; anything but zero must be accepted. */
  allowed_host_data: z.array(hex(32)).min(1).optional(),
  max_age_seconds: maxAge,
})

const tinfoilPolicySchema = z
  .strictObject({
    adapter: z.literal('tinfoil'),
    allowed_measurements: z.array(measurement).min(1).optional(),
    /** In place of measurements: those of every release that this workflow built and logged. */
    provenance: provenanceSchema.optional(),
    /** `required` refuses documents of version 2, which bind none. */
    nonce: z.enum(['required', 'optional']).default('optional'),
    /** What the guest was started with beside its measurement; anything but zero must be accepted. */
    allowed_host_data: z.array(hex(32)).min(1).optional(),
    allowed_mr_config_id: z.array(hex(48)).min(1).optional(),
    /** TDX: platform states to accept, as Intel spells them. */
    tcb_statuses: tcbStatuses,
    tdx_policy: tdxPolicySchema,
    /** SEV-SNP: lowest firmware by product, in place of what AMD and the provider published. */
    tcb_floor: tcbFloorSchema.optional(),
    snp_policy: z.strictObject(guestPolicyMembers).prefault({}),
    max_age_seconds: maxAge,
  })
  .refine(
    (policy) => (policy.allowed_measurements === undefined) !== (policy.provenance === undefined),
    'exactly one of allowed_measurements and provenance must be given',
  )

/** What is demanded of a workload that dstack started on TDX, however it reports. */
const dstackWorkloadMembers = {
  allowed_compose_hashes: z.array(hex(32)).min(1),
  /** Firmware and OS of the guest. Without it the compose hash is only as good as an OS that was not checked. */
  allowed_measurements: z.array(hex(192)).min(1).optional(),
  /** `required` refuses guests that were created without MRCONFIGID, as the provider's own tools do unless told. */
  mr_config_id: z.enum(['required', 'optional']).default('optional'),
  /** MRCONFIGID to demand in place of one that names the compose hash. */
  allowed_mr_config_id: z.array(hex(48)).min(1).optional(),
  tcb_statuses: tcbStatuses,
  tdx_policy: tdxPolicySchema,
  max_age_seconds: maxAge,
}

const aciPolicySchema = z.strictObject({ adapter: z.literal('aci'), ...dstackWorkloadMembers })

const dstackPolicySchema = z.strictObject({
  adapter: z.literal('dstack'),
  ...dstackWorkloadMembers,
  gpu: z.enum(['required', 'optional']).default('required'),
  /**
   * Of a gateway: every node that it shows behind each of these models, by the provider's own names, must run one of these
   * workloads on such an OS.
   */
  models: z
    .strictObject({
      names: z.array(z.string().min(1).max(256)).min(1).max(16),
      allowed_compose_hashes: z.array(hex(32)).min(1),
      allowed_measurements: z.array(hex(192)).min(1).optional(),
    })
    .optional(),
  /** Which of its keys the provider signs finished completions with. */
  signing_algo: z.enum(['ed25519', 'ecdsa']).default('ed25519'),
  /**
   * What must hold of GPU evidence: NVIDIA's service's verdict, the certificates and signatures of the devices themselves.
   * Those that are carried are verified in any case.
   */
  gpu_checks: z
    .array(z.enum(['nvidia_verdict', 'device_report']))
    .min(1)
    .default(['nvidia_verdict']),
})

export const providerPolicySchema = z.discriminatedUnion('adapter', [
  z.strictObject({ adapter: z.literal('none') }),
  envelopePolicySchema,
  tinfoilPolicySchema,
  dstackPolicySchema,
  aciPolicySchema,
])
export type ProviderPolicy = z.output<typeof providerPolicySchema>
export type AdapterName = Exclude<ProviderPolicy['adapter'], 'none'>
export type PolicyOf<Name extends AdapterName> = Extract<ProviderPolicy, { adapter: Name }>

/** True where evidence that satisfies the policy leaves open which operating system speaks for the workload. */
export function pinsNoOs(policy: ProviderPolicy): boolean {
  const isDstack = policy.adapter === 'dstack' || policy.adapter === 'aci'
  return isDstack && policy.allowed_measurements === undefined
}
