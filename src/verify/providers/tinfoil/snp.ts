import { equalBytes } from '../../../protocol/bytes.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { summarizeSnp } from '../../snp/snp-summary.ts'
import { requireLaunchBinding } from '../launch-binding.ts'
import { judgeSnpPlatform, readRevocationList } from '../snp-platform.ts'
import type { JudgePlatform } from './evidence.ts'
import { originCheck, recordsOf, requireRelease } from './release.ts'

/** Judges the SNP report of a document: the platform, REPORT_DATA, HOST_DATA, and the measurement. */
export const judgeTinfoilSnp: JudgePlatform = async (document, fetched, policy, options) => {
  const { evidence, reportData, collateral } = document
  const chainPem = collateral.snpChainPem ?? fetched.snp_chain_pem
  if (chainPem === undefined) throw new EvidenceRefused('hardware', ['certificate_chain'])
  const crl = readRevocationList(fetched.snp_crl_base64) ?? collateral.snpRevocationList
  const { report, simulated, checks, endsAt } = await judgeSnpPlatform(
    evidence,
    { chainPem, crl },
    policy,
    options,
  )
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
    strength: simulated ? 'simulated' : 'hardware',
    claims: { tee: 'sev-snp', measurement },
    summary: { ...summary, ...releases },
    checks: [...checks, 'report_data', 'host_data', originCheck(policy)],
    endsAt,
  }
}
