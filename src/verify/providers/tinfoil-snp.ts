import { equalBytes, fromBase64, toHex, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import type { TcbFloors } from '../../protocol/trust-bundle.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../snp/policy.ts'
import { summarizeSnp } from '../snp/snp-summary.ts'
import { verifySnp } from '../snp/verify-snp.ts'
import { requireChecks } from './require-checks.ts'
import { requireLaunchBinding } from './launch-binding.ts'
import type { JudgePlatform } from './tinfoil.ts'

/** The vendor's published floor; it names no other product, so others need the operator's. */
const VENDOR_FLOOR: TcbFloors = { genoa: { bootloader: 7, tee: 0, snp: 14, microcode: 72 } }

function policyFor({ tcb_floor: floor = VENDOR_FLOOR, snp_policy: snp }: PolicyOf<'tinfoil'>) {
  return {
    ...STANDALONE_POLICY,
    minFirmware: [1, 55, 21],
    allowProvisionalFirmware: false,
    tcbFloor: floor,
    launchTcbFloor: floor,
    allowSmt: snp.allow_smt,
    allowCxl: snp.allow_cxl,
    requireSingleSocket: snp.require_single_socket,
    requireXts: snp.require_xts,
    requireCiphertextHiding: snp.require_ciphertext_hiding,
    requiredPlatformInfo: snp.required_platform_info,
  } satisfies SnpPolicy
}

/**
 * Judges the SNP report of a document: chain to AMD, and AMD's revocation list -> report -> firmware floors ->
 * REPORT_DATA -> HOST_DATA -> measurement.
 */
export const judgeTinfoilSnp: JudgePlatform = async (document, fetched, policy, options) => {
  const { evidence, reportData, collateral } = document
  const chainPem = collateral.snpChainPem ?? fetched.snp_chain_pem
  if (chainPem === undefined) throw new EvidenceRefused('hardware', ['certificate_chain'])
  const crl = readList(fetched.snp_crl_base64) ?? collateral.snpRevocationList
  const { checks, report, chain } = await verifySnp(evidence, chainPem, {
    now: options.now,
    policy: policyFor(policy),
    simulated: options.simulated,
    ...(options.anchors && { anchors: options.anchors }),
    ...(crl && { crl }),
  })
  requireChecks(checks)
  if (chain === undefined) throw new EvidenceRefused('hardware')
  // A simulated root has no list to bring.
  if (crl === undefined && !chain.simulated) throw new EvidenceRefused('hardware', ['revocation'])
  if (!equalBytes(report.reportData, reportData)) {
    throw new EvidenceRefused('hardware', ['report_data'])
  }
  requireLaunchBinding('host_data', report.hostData, policy.allowed_host_data)
  if (!policy.allowed_measurements.includes(toHex(report.measurement))) {
    throw new EvidenceRefused('measurement')
  }
  const { measurement, ...summary } = summarizeSnp(report)
  return {
    strength: chain.simulated ? 'simulated' : 'hardware',
    claims: { tee: 'sev-snp', measurement },
    summary,
  }
}

function readList(base64: string | undefined): Bytes | undefined {
  try {
    return base64 === undefined ? undefined : fromBase64(base64)
  } catch {
    throw new MalformedEvidence('revocation list', 'not base64')
  }
}
