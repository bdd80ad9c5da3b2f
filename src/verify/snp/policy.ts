import type { PlatformInfoBit } from '../../protocol/snp-policy.ts'
import type { TcbFloors, TrustBundle } from '../../protocol/trust-bundle.ts'
import type { FirmwareVersion } from './report.ts'

/**
 * Requirements on a report in addition to being genuine. Debugging, migration agents and unknown policy bits are always
 * refused. Undefined members require nothing.
 */
export interface SnpPolicy {
  readonly minReportVersion: number
  readonly allowedVmpl: readonly number[]
  readonly allowSmt: boolean
  /** Whether memory behind CXL may be used for the guest. */
  readonly allowCxl: boolean
  /** Whether the guest must run on one socket. */
  readonly requireSingleSocket: boolean
  /** Whether memory must be encrypted with AES-256 in XTS mode. */
  readonly requireXts: boolean
  /** Whether the host must be unable to read the guest's ciphertext. */
  readonly requireCiphertextHiding: boolean
  readonly minPolicyAbi: readonly [major: number, minor: number]
  readonly requiredPlatformInfo: readonly PlatformInfoBit[]
  readonly requiredMitigationBits: readonly number[]
  readonly minGuestSvn: number
  readonly minFirmware: FirmwareVersion
  readonly allowProvisionalFirmware: boolean
  readonly allowMaskedChipId: boolean
  readonly allowedVlekCspIds?: readonly string[]
  readonly allowedIdKeyDigests?: readonly string[] | undefined
  readonly allowedAuthorKeyDigests?: readonly string[] | undefined
  /** A product that is missing here is refused. */
  readonly tcbFloor?: TcbFloors
  readonly launchTcbFloor?: TcbFloors | undefined
}

/**
 * The policy for a report that is verified by itself, without a trust bundle: it must be genuine, and its guest closed.
 */
export const STANDALONE_POLICY: SnpPolicy = {
  minReportVersion: 3,
  allowedVmpl: [0],
  allowSmt: true,
  allowCxl: false,
  requireSingleSocket: false,
  requireXts: false,
  requireCiphertextHiding: false,
  minPolicyAbi: [0, 0],
  requiredPlatformInfo: [],
  requiredMitigationBits: [],
  minGuestSvn: 0,
  minFirmware: [0, 0, 0],
  allowProvisionalFirmware: true,
  allowMaskedChipId: false,
}

/** The requirements of a trust bundle. */
export function policyOfBundle(bundle: TrustBundle): SnpPolicy {
  const { snp_policy: snp } = bundle
  const [abiMajor = 0, abiMinor = 0] = snp.min_policy_abi.split('.').map(Number)
  const [major = 0, minor = 0, build = 0] = bundle.min_firmware.split('.').map(Number)
  return {
    minReportVersion: snp.min_report_version,
    allowedVmpl: snp.allowed_vmpl,
    allowSmt: snp.allow_smt,
    allowCxl: snp.allow_cxl,
    requireSingleSocket: snp.require_single_socket,
    requireXts: snp.require_xts,
    requireCiphertextHiding: snp.require_ciphertext_hiding,
    minPolicyAbi: [abiMajor, abiMinor],
    requiredPlatformInfo: snp.required_platform_info,
    requiredMitigationBits: snp.required_mitigation_bits,
    minGuestSvn: bundle.min_guest_svn,
    minFirmware: [major, minor, build],
    allowProvisionalFirmware: snp.allow_provisional_firmware,
    allowMaskedChipId: snp.allow_masked_chip_id,
    allowedVlekCspIds: snp.allowed_vlek_csp_ids,
    tcbFloor: bundle.tcb_floor,
    allowedIdKeyDigests: snp.allowed_id_key_digests,
    allowedAuthorKeyDigests: snp.allowed_author_key_digests,
    launchTcbFloor: bundle.launch_tcb_floor,
  }
}
