import { toHex, utf8 } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import type { BootFacts } from './dstack-event-log.ts'
import { requireConfigId } from './dstack-config-id.ts'
import type { DstackReport } from './dstack-report.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import type { VerifiedQuote } from '../tdx/quote.ts'
import { tdxMeasurement } from '../tdx/state.ts'

export interface WorkloadInputs {
  readonly report: Pick<DstackReport, 'appCompose' | 'mrConfig'>
  readonly quote: VerifiedQuote
  readonly facts: BootFacts
  readonly policy: PolicyOf<'dstack' | 'aci'>
}

/**
 * Checks that the workload is measured and allowed: the compose file has the hash that boot measured, the hash is in
 * the operator's list, and MRCONFIGID matches. Then the same for firmware and OS, where the operator pins them.
 * @throws EvidenceRefused `compose_hash` or `measurement`
 */
export async function checkWorkload({
  report,
  quote,
  facts,
  policy,
}: WorkloadInputs): Promise<void> {
  const { composeHash } = facts
  const actual = toHex(await sha256(utf8(report.appCompose)))
  if (actual !== composeHash || !policy.allowed_compose_hashes.includes(composeHash)) {
    throw new EvidenceRefused('compose_hash')
  }
  await requireConfigId(quote.mrConfigId, { facts, mrConfig: report.mrConfig, policy })
  const { allowed_measurements: allowed } = policy
  if (allowed !== undefined && !allowed.includes(tdxMeasurement(quote))) {
    throw new EvidenceRefused('measurement')
  }
}
