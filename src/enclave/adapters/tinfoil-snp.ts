import { equalBytes, toHex } from '../../protocol/bytes.ts'
import type { TcbFloors } from '../../protocol/trust-bundle.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../../verify/snp/policy.ts'
import { verifySnp } from '../../verify/snp/verify-snp.ts'
import { simulatedPolicy, type EvidenceSubject, type EvidenceTools } from './adapter.ts'
import { demandChecks } from './demand-checks.ts'
import { EvidenceRefused } from './evidence-refused.ts'
import { summarizeSnp } from '../snp/snp-summary.ts'
import type { TinfoilDocument, TinfoilVerdict } from './tinfoil.ts'

/** The vendor's published floor; it names no other product, so others need the operator's. */
const VENDOR_FLOOR: TcbFloors = { genoa: { bootloader: 7, tee: 0, snp: 14, microcode: 72 } }

function policyFor(floor: TcbFloors): SnpPolicy {
  return {
    ...STANDALONE_POLICY,
    minFirmware: [1, 55, 21],
    allowProvisionalFirmware: false,
    tcbFloor: floor,
    launchTcbFloor: floor,
  }
}

/**
 * Judges the SNP report of a document: chain to AMD -> report -> firmware floors -> REPORT_DATA -> measurement. The
 * certificates come with the document, or from AMD. Throws `EvidenceRefused`.
 */
export async function judgeTinfoilSnp(
  { evidence, reportData, collateral, version }: TinfoilDocument,
  subject: EvidenceSubject<'tinfoil'>,
  tools: EvidenceTools,
): Promise<TinfoilVerdict> {
  const chainPem = collateral.snpChainPem ?? (await findChain(evidence, tools))
  const { policy } = subject
  const { snpRevocationList: crl } = collateral
  const { checks, report, chain } = await verifySnp(evidence, chainPem, {
    now: tools.now(),
    policy: policyFor(policy.tcb_floor ?? VENDOR_FLOOR),
    simulated: simulatedPolicy(subject, tools),
    ...(crl === undefined ? {} : { crl }),
  })
  demandChecks(checks)
  if (chain === undefined) throw new EvidenceRefused('hardware')
  // Version 3 brings the list along; a simulated root has none to bring.
  if (version === 'v3' && crl === undefined && !chain.simulated) {
    throw new EvidenceRefused('hardware', ['revocation'])
  }
  if (!equalBytes(report.reportData, reportData)) {
    throw new EvidenceRefused('hardware', ['report_data'])
  }
  if (!policy.allowed_measurements.includes(toHex(report.measurement))) {
    throw new EvidenceRefused('measurement')
  }
  const { measurement, ...summary } = summarizeSnp(report)
  return {
    strength: chain.simulated ? 'simulated' : 'hardware',
    claims: { tee: 'sev-snp', measurement },
    summary,
    fetched: collateral.snpChainPem === undefined ? chainPem : null,
  }
}

function findChain(report: TinfoilDocument['evidence'], tools: EvidenceTools): Promise<string> {
  return tools.findSnpChain(report).catch((cause: unknown) => {
    throw new EvidenceRefused('service_unreachable', [], { cause })
  })
}
