import { toHex, utf8 } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import type { PolicyOf } from '../../protocol/provider-policy.ts'
import type { BootFacts } from './dstack-event-log.ts'
import type { DstackReport } from './dstack-report.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import type { VerifiedQuote } from '../tdx/quote.ts'
import { tdxMeasurement } from '../tdx/state.ts'

export interface WorkloadInputs {
  readonly report: DstackReport
  readonly quote: VerifiedQuote
  readonly facts: BootFacts
  readonly policy: PolicyOf<'dstack'>
}

/** First byte of MRCONFIGID: a compose hash follows. */
const COMPOSE_HASH_V1 = '01'

/**
 * Checks that the workload is the measured one and one the operator allows: the compose file has the hash that boot
 * measured, the guest was created for that hash, and the hash is in the list. Then the same for firmware and OS, where
 * the operator pins them. Throws `EvidenceRefused`.
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
  const configId = toHex(quote.mrConfigId)
  const unset = /^0+$/.test(configId)
  const named = configId === (COMPOSE_HASH_V1 + composeHash).padEnd(configId.length, '0')
  if (!named && !(unset && policy.mr_config_id === 'optional')) {
    throw new EvidenceRefused('compose_hash', ['mr_config_id'])
  }
  const { allowed_measurements: allowed } = policy
  if (allowed !== undefined && !allowed.includes(tdxMeasurement(quote))) {
    throw new EvidenceRefused('measurement')
  }
}
