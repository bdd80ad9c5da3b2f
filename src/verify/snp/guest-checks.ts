import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { PLATFORM_INFO_BITS } from '../../protocol/snp-policy.ts'
import { firstFault, judge, type Check } from '../check.ts'
import type { SnpPolicy } from './policy.ts'
import type { SnpReport } from './report.ts'

/** Bits of the guest policy (AMD 56860, GUEST_POLICY); 0..15 hold the ABI version. */
const SMT_ALLOWED = 16
const RESERVED_ONE = 17
const MIGRATE_MA = 18
const DEBUG = 19
const SINGLE_SOCKET = 20
const CXL_ALLOWED = 21
const MEM_AES_256_XTS = 22
const CIPHERTEXT_HIDING = 24
const FIRST_RESERVED = 26n

/** Checks of the guest policy, and what is wrong where they fail. */
const POLICY_CHECKS = [
  ['smt', 'allows SMT'],
  ['cxl', 'allows memory behind CXL'],
  ['single_socket', 'allows more than one socket'],
  ['memory_xts', 'allows memory without AES-256 in XTS mode'],
  ['ciphertext_hiding', 'lets the host read ciphertext'],
] as const

/** Checks the report's statements on the guest: how closed it is, and the state of its launch. */
export function checkGuest(report: SnpReport, policy: SnpPolicy): Check[] {
  const guestPolicy = `policy 0x${report.policy.toString(16)}`
  const vmpl = `privilege level ${report.vmpl}`
  return [
    judge(
      'debug_disabled',
      bit(report.policy, DEBUG) ? `${guestPolicy} allows debugging` : undefined,
      guestPolicy,
    ),
    judge('migration_disabled', migrationFault(report), guestPolicy),
    judge('policy_form', policyFormFault(report), guestPolicy),
    checkAbi(report, policy),
    ...checkRequired(report, policy),
    judge(
      'vmpl',
      policy.allowedVmpl.includes(report.vmpl) ? undefined : `${vmpl} is not allowed`,
      vmpl,
    ),
    checkPlatformInfo(report, policy),
    judge(
      'guest_svn',
      report.guestSvn < policy.minGuestSvn
        ? `${report.guestSvn} is below ${policy.minGuestSvn}`
        : undefined,
      `${report.guestSvn}`,
    ),
    checkMitigations(report, policy),
    checkIdKeys(report, policy),
    judge(
      'measurement_present',
      isZero(report.measurement) ? 'the measurement is all zero' : undefined,
      toHex(report.measurement),
    ),
  ]
}

/** Requirements of a relying party on the guest policy, each as a check of its own. */
function checkRequired({ policy: bits }: SnpReport, required: SnpPolicy): Check[] {
  const detail = `policy 0x${bits.toString(16)}`
  const has = (index: number) => bit(bits, index)
  const faults = {
    smt: !required.allowSmt && has(SMT_ALLOWED),
    cxl: !required.allowCxl && has(CXL_ALLOWED),
    single_socket: required.requireSingleSocket && !has(SINGLE_SOCKET),
    memory_xts: required.requireXts && !has(MEM_AES_256_XTS),
    ciphertext_hiding: required.requireCiphertextHiding && !has(CIPHERTEXT_HIDING),
  }
  return POLICY_CHECKS.map(([name, words]) =>
    judge(name, faults[name] ? `${detail} ${words}` : undefined, detail),
  )
}

function migrationFault({ policy, reportIdMa }: SnpReport): string | undefined {
  return firstFault(
    bit(policy, MIGRATE_MA) && 'the policy allows a migration agent',
    reportIdMa.some((byte) => byte !== 0xff) && 'the guest has a migration agent',
  )
}

function policyFormFault({ policy }: SnpReport): string | undefined {
  return firstFault(
    !bit(policy, RESERVED_ONE) && 'bit 17, which must be one, is zero',
    policy >> FIRST_RESERVED !== 0n && 'reserved bits are set',
  )
}

function checkAbi({ policy }: SnpReport, { minPolicyAbi: [major, minor] }: SnpPolicy): Check {
  const abi = [Number((policy >> 8n) & 0xffn), Number(policy & 0xffn)] as const
  const below = abi[0] < major || (abi[0] === major && abi[1] < minor)
  const fault = below ? `${abi.join('.')} is below ${major}.${minor}` : undefined
  return judge('policy_abi', fault, abi.join('.'))
}

function checkPlatformInfo({ platformInfo }: SnpReport, policy: SnpPolicy): Check {
  const on = PLATFORM_INFO_BITS.filter((_, index) => bit(platformInfo, index))
  const missing = policy.requiredPlatformInfo.filter((name) => !on.includes(name))
  const fault = missing.length > 0 ? `lacks ${missing.join(', ')}` : undefined
  return judge('platform_info', fault, on.join(', ') || 'none')
}

function checkMitigations(report: SnpReport, { requiredMitigationBits }: SnpPolicy): Check {
  const inForce = report.launchMitigations & report.currentMitigations
  const missing = requiredMitigationBits.filter((index) => !bit(inForce, index))
  const fault = missing.length > 0 ? `lacks bits ${missing.join(', ')}` : undefined
  return judge('mitigations', fault, `0x${inForce.toString(16)}`)
}

function checkIdKeys(report: SnpReport, policy: SnpPolicy): Check {
  const { allowedIdKeyDigests: idKeys, allowedAuthorKeyDigests: authorKeys } = policy
  const author = report.authorKeyEnabled && authorKeys?.includes(toHex(report.authorKeyDigest))
  const fault = firstFault(
    idKeys !== undefined && !idKeys.includes(toHex(report.idKeyDigest)) && 'unknown id key',
    authorKeys !== undefined && author !== true && 'unknown author key',
  )
  return judge('id_key', fault, isZero(report.idKeyDigest) ? 'none, none asked for' : 'accepted')
}

function bit(value: bigint, index: number): boolean {
  return ((value >> BigInt(index)) & 1n) === 1n
}

function isZero(bytes: Bytes): boolean {
  return bytes.every((byte) => byte === 0)
}
