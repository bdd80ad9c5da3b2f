import { utf8 } from '../../../protocol/bytes.ts'
import { sha256Hex } from '../../../protocol/digest.ts'
import type { PolicyOf } from '../../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import type { BootFacts } from './event-log.ts'

/**
 * Checks that the workload is measured and allowed: the compose file has the hash that boot measured, and the hash is in
 * the operator's list.
 * @throws EvidenceRefused `compose_hash`
 */
export async function requireWorkload(
  appCompose: string,
  { composeHash }: BootFacts,
  { allowed_compose_hashes: allowed }: Pick<PolicyOf<'dstack' | 'aci'>, 'allowed_compose_hashes'>,
): Promise<void> {
  const actual = await sha256Hex(utf8(appCompose))
  if (actual !== composeHash || !allowed.includes(composeHash)) {
    throw new EvidenceRefused('compose_hash')
  }
}
