import { fromBase64, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../snp/policy.ts'
import { publishedFloor } from '../snp/published-floor.ts'
import { readReport, type SnpReport } from '../snp/report.ts'
import { verifySnp } from '../snp/verify-snp.ts'
import type { JudgeOptions } from './judged-evidence.ts'
import { requireChecks } from './require-checks.ts'

/** An operator's requirements on a provider's SEV-SNP machines. */
export type SnpPlatformPolicy = Pick<PolicyOf<'tinfoil'>, 'tcb_floor' | 'snp_policy'>

/** AMD's documents on a machine. */
export interface SnpCollateral {
  /** VEK, ASK, ARK in PEM. */
  readonly chainPem: string
  /** DER. */
  readonly crl: Bytes | undefined
}

export interface JudgedSnp {
  readonly report: SnpReport
  readonly simulated: boolean
  /** The names of the checks that held. */
  readonly checks: readonly string[]
  /** When the first certificate of the chip or AMD's list expires, in milliseconds since 1970. */
  readonly endsAt: number
}

/**
 * Judges a provider's SEV-SNP report: the chain to AMD with AMD's revocation list, the report, and the firmware floors.
 * A simulated root has no revocation list; every other root needs one.
 * @throws EvidenceRefused `hardware` or another code of the first check that fails
 * @throws MalformedEvidence when report or certificates cannot be read
 */
export async function judgeSnpPlatform(
  bytes: Bytes,
  { chainPem, crl }: SnpCollateral,
  policy: SnpPlatformPolicy,
  { now, simulated, anchors }: JudgeOptions,
): Promise<JudgedSnp> {
  const { checks, report, chain, endsAt } = await verifySnp(bytes, chainPem, {
    now,
    policy: policyFor(policy, bytes),
    simulated,
    ...(anchors && { anchors }),
    ...(crl && { crl }),
  })
  requireChecks(checks)
  if (chain === undefined || endsAt === undefined) throw new EvidenceRefused('hardware')
  if (crl === undefined && !chain.simulated) throw new EvidenceRefused('hardware', ['revocation'])
  return { report, simulated: chain.simulated, checks: checks.map(({ name }) => name), endsAt }
}

/** @throws MalformedEvidence when it is not base64 */
export function readRevocationList(base64: string | undefined): Bytes | undefined {
  try {
    return base64 === undefined ? undefined : fromBase64(base64)
  } catch {
    throw new MalformedEvidence('revocation list', 'not base64')
  }
}

function policyFor({ tcb_floor, snp_policy: snp }: SnpPlatformPolicy, report: Bytes) {
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
