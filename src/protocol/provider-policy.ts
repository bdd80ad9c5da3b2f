import * as z from 'zod'
import { guestPolicyMembers } from './snp-policy.ts'
import { timestampSchema } from './timestamp.ts'
import { tcbFloorSchema } from './trust-bundle.ts'

/**
 * Requirements on a provider's evidence: `attestation` of a provider in the configuration file, and in the policy file
 * under which an auditor judges receipts (docs/egress.md). Unknown keys are errors.
 */

const hex = (bytes: number) =>
  z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `${2 * bytes} lowercase hex digits`)
const jsonObject = z.record(z.string(), z.json())

const maxAge = z.int().min(60).max(604_800).default(3600)

const tcbStatuses = z.array(z.string()).min(1).default(['UpToDate'])

/** A launch digest of SEV-SNP, or MRTD, RTMR0, RTMR1 and RTMR2 of TDX one after the other. */
const measurement = z.union([hex(48), hex(192)])

/** Requirements on the platform and on how the guest was started; the guest itself is pinned by measurements. */
const tdxPolicySchema = z
  .strictObject({
    /** Bits that may be set: SEPT_VE_DISABLE, protection keys, key locker, performance counters. */
    allowed_td_attributes: hex(8)
      .refine((mask) => mask.endsWith('00'), 'the lowest byte opens the guest to its host')
      .default('80000000d0000000'),
    /** Bits that may be set: the most that the TDX module allows. */
    allowed_xfam: hex(8).default('000000000006dbe7'),
    /** SHA-384 of accepted TDX modules; if absent, any module that Intel rates well enough. */
    allowed_mr_seam: z.array(hex(48)).min(1).optional(),
    /** Collateral older than this TCB recovery of Intel is refused even before it expires. */
    min_tcb_evaluation_data_number: z.int().min(0).default(17),
    denied_advisories: z.array(z.string().regex(/^INTEL-SA-\d{5}$/)).default([]),
  })
  .prefault({})

/**
 * The required signer of a public build record: a workflow of a repository, run for a tag, as stated by the
 * certificate's issuer.
 */
const buildIdentityMembers = {
  /** `owner/name` on GitHub. */
  repository: z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'not owner/name'),
  workflow: z
    .string()
    .regex(/^\.github\/workflows\/[\w.-]+\.ya?ml$/, 'not .github/workflows/<file>'),
  issuer: z.url({ protocol: /^https$/ }).default('https://token.actions.githubusercontent.com'),
  /** Records logged earlier are refused. */
  not_before: timestampSchema.optional(),
}

const provenanceSchema = z.strictObject({
  ...buildIdentityMembers,
  /** The signer of the records of the virtual hardware on which guests are started (TDX: MRTD and RTMR0). */
  platform: z.strictObject(buildIdentityMembers).optional(),
})

export type BuildIdentity = Omit<z.output<typeof provenanceSchema>, 'platform'>

const envelopePolicySchema = z.strictObject({
  adapter: z.literal('envelope'),
  root_key: jsonObject,
  /** Environments whose trust bundles are accepted; in local mode `local` is accepted as well. */
  environments: z.array(z.string()).min(1).default(['production']),
  /** `optional` also accepts hosts whose reports bind no nonce. */
  nonce: z.enum(['required', 'optional']).default('required'),
  /** Values of HOST_DATA to accept in addition to the trust bundle's; any value but zero must be listed. */
  allowed_host_data: z.array(hex(32)).min(1).optional(),
  max_age_seconds: maxAge,
})

/** Requirements on machines with SEV-SNP. */
const snpMachineMembers = {
  /** Minimum firmware by product, instead of the levels that AMD and Tinfoil published. */
  tcb_floor: tcbFloorSchema.optional(),
  snp_policy: z.strictObject(guestPolicyMembers).prefault({}),
}

const tinfoilPolicySchema = z
  .strictObject({
    adapter: z.literal('tinfoil'),
    allowed_measurements: z.array(measurement).min(1).optional(),
    /** Instead of measurements: accepts those of every release that this workflow built and logged. */
    provenance: provenanceSchema.optional(),
    /** `required` refuses documents of version 2, which bind no nonce. */
    nonce: z.enum(['required', 'optional']).default('optional'),
    /** Values of HOST_DATA or MRCONFIGID to accept; any value but zero must be listed. */
    allowed_host_data: z.array(hex(32)).min(1).optional(),
    allowed_mr_config_id: z.array(hex(48)).min(1).optional(),
    /** TDX: platform states to accept, in Intel's notation. */
    tcb_statuses: tcbStatuses,
    tdx_policy: tdxPolicySchema,
    ...snpMachineMembers,
    max_age_seconds: maxAge,
  })
  .refine(
    (policy) => (policy.allowed_measurements === undefined) !== (policy.provenance === undefined),
    'exactly one of allowed_measurements and provenance must be given',
  )

/** Requirements on a dstack guest: which workloads, on which firmware and OS. */
const dstackGuestMembers = {
  allowed_compose_hashes: z.array(hex(32)).min(1),
  /**
   * Firmware and OS of the guest, by the hardware's measurements. Without this or the next member, an unchecked
   * operating system reported the compose hash.
   */
  allowed_measurements: z.array(measurement).min(1).optional(),
  /** Instead of measurements: releases of the OS, by the hash of their list of files (docs/providers.md). */
  allowed_os_image_hashes: z.array(hex(32)).min(1).optional(),
}

const pinsOsOnce = {
  check: (pins: OsPins) =>
    pins.allowed_measurements === undefined || pins.allowed_os_image_hashes === undefined,
  message: 'at most one of allowed_measurements and allowed_os_image_hashes can be given',
}

/** The members of a policy that say which operating systems are accepted. */
export interface OsPins {
  readonly allowed_measurements?: readonly string[] | undefined
  readonly allowed_os_image_hashes?: readonly string[] | undefined
}

/** Requirements on a workload that dstack started, whatever the report format. */
const dstackWorkloadMembers = {
  ...dstackGuestMembers,
  /** `required` refuses guests that were created without MRCONFIGID, which is the default of the provider's tools. */
  mr_config_id: z.enum(['required', 'optional']).default('optional'),
  /** MRCONFIGID values to require instead of one that names the compose hash. */
  allowed_mr_config_id: z.array(hex(48)).min(1).optional(),
  /** TDX: platform states to accept, as Intel spells them. */
  tcb_statuses: tcbStatuses,
  tdx_policy: tdxPolicySchema,
  max_age_seconds: maxAge,
}

const aciPolicySchema = z
  .strictObject({ adapter: z.literal('aci'), ...dstackWorkloadMembers })
  .refine(pinsOsOnce.check, pinsOsOnce.message)

const dstackPolicySchema = z
  .strictObject({
    adapter: z.literal('dstack'),
    ...dstackWorkloadMembers,
    ...snpMachineMembers,
    gpu: z.enum(['required', 'optional']).default('required'),
    /**
     * For a gateway: every node that it reports behind each of these models (the provider's names) must run one of these
     * workloads on such an operating system.
     */
    models: z
      .strictObject({
        names: z.array(z.string().min(1).max(256)).min(1).max(16),
        ...dstackGuestMembers,
      })
      .refine(pinsOsOnce.check, pinsOsOnce.message)
      .optional(),
    /** The provider's key type for signing finished completions. */
    signing_algo: z.enum(['ed25519', 'ecdsa']).default('ed25519'),
    /**
     * Required checks of GPU evidence: the verdict of NVIDIA's service, the certificates and signatures of the devices
     * themselves. Those that the evidence contains are verified in any case.
     */
    gpu_checks: z
      .array(z.enum(['nvidia_verdict', 'device_report']))
      .min(1)
      .default(['nvidia_verdict']),
  })
  .refine(pinsOsOnce.check, pinsOsOnce.message)

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

/** True where evidence that satisfies the policy does not prove which operating system runs the workload. */
export function pinsNoOs(policy: ProviderPolicy): boolean {
  const isDstack = policy.adapter === 'dstack' || policy.adapter === 'aci'
  return isDstack && !pinsOs(policy)
}

export function pinsOs({ allowed_measurements, allowed_os_image_hashes }: OsPins): boolean {
  return allowed_measurements !== undefined || allowed_os_image_hashes !== undefined
}
