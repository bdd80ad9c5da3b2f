import { equalBytes, fromBase64, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../snp/policy.ts'
import { publishedFloor } from '../snp/published-floor.ts'
import { readReport } from '../snp/report.ts'
import { summarizeSnp } from '../snp/snp-summary.ts'
import { verifySnp } from '../snp/verify-snp.ts'
import { requireChecks } from './require-checks.ts'
import { requireLaunchBinding } from './launch-binding.ts'
import type { JudgePlatform } from './tinfoil-evidence.ts'
import { requireRelease, recordsOf } from './tinfoil-release.ts'

function policyFor({ tcb_floor, snp_policy: snp }: PolicyOf<'tinfoil'>, report: Bytes) {
  const floor = tcb_floor ?? publishedFloor(readReport(report))
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
    policy: policyFor(policy, evidence),
    simulated: options.simulated,
    ...(options.anchors && { anchors: options.anchors }),
    ...(crl && { crl }),
  })
  requireChecks(checks)
  if (chain === undefined) throw new EvidenceRefused('hardware')
  // A simulated root has no revocation list.
  if (crl === undefined && !chain.simulated) throw new EvidenceRefused('hardware', ['revocation'])
  if (!equalBytes(report.reportData, reportData)) {
    throw new EvidenceRefused('hardware', ['report_data'])
  }
  requireLaunchBinding('host_data', report.hostData, policy.allowed_host_data)
  const { measurement, ...summary } = summarizeSnp(report)
  const releases = requireRelease(
    { platform: 'snp', measurement },
    recordsOf(document, fetched),
    policy,
    options,
  )
  return {
    strength: chain.simulated ? 'simulated' : 'hardware',
    claims: { tee: 'sev-snp', measurement },
    summary: { ...summary, ...releases },
  }
}

function readList(base64: string | undefined): Bytes | undefined {
  try {
    return base64 === undefined ? undefined : fromBase64(base64)
  } catch {
    throw new MalformedEvidence('revocation list', 'not base64')
  }
}
