import * as z from 'zod'

/** Bits of PLATFORM_INFO by name, in bit order (SEV-SNP ABI, ATTESTATION_REPORT). */
export const PLATFORM_INFO_BITS = [
  'smt',
  'tsme',
  'ecc',
  'rapl_disabled',
  'ciphertext_hiding',
  'alias_check_complete',
  'reserved_6',
  'tio',
] as const
export type PlatformInfoBit = (typeof PLATFORM_INFO_BITS)[number]

/**
 * Optional requirements on how a guest was started: on the guest policy in its report (SEV-SNP ABI, POLICY: SMT bit 16,
 * SINGLE_SOCKET 20, CXL_ALLOW 21, MEM_AES_256_XTS 22, CIPHERTEXT_HIDING_DRAM 24), which the firmware enforces against
 * the host, and on the platform.
 */
export const guestPolicyMembers = {
  allow_smt: z.boolean().default(true),
  /** Whether memory behind CXL may be used for the guest. */
  allow_cxl: z.boolean().default(false),
  require_single_socket: z.boolean().default(false),
  /** Whether memory must be encrypted with AES-256 in XTS mode. */
  require_xts: z.boolean().default(false),
  /** Whether the host must be unable to read the guest's ciphertext. */
  require_ciphertext_hiding: z.boolean().default(false),
  required_platform_info: z.array(z.enum(PLATFORM_INFO_BITS)).default([]),
}
