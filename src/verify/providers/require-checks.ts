import type { Check } from '../check.ts'
import type { CheckName } from '../check-names.ts'
import { EvidenceRefused, type RefusalCode } from '../evidence-refused.ts'

/** The refusal code of each failed check; checks that are not listed concern the hardware. */
const CODES: Partial<Record<CheckName, RefusalCode>> = {
  nonce: 'nonce',
  tls_key: 'tls_key',
  report_data: 'tls_key',
  freshness: 'expired',
  debug_disabled: 'debug',
  measurement_allowed: 'measurement',
  not_revoked: 'measurement',
  manifest_key: 'trust_bundle',
  manifest_header: 'trust_bundle',
  manifest_signature: 'trust_bundle',
  manifest_workload: 'trust_bundle',
  workload_identity_tag: 'trust_bundle',
  trust_bundle_header: 'trust_bundle',
  trust_bundle_signature: 'trust_bundle',
  trust_bundle_dates: 'trust_bundle',
  trust_bundle_version: 'trust_bundle',
  trust_bundle_environment: 'trust_bundle',
  trust_bundle_origin: 'trust_bundle',
}

/** @throws EvidenceRefused when a check failed; it names the failed checks without their details */
export function requireChecks(checks: readonly Check[]): void {
  const failed = checks.filter(({ ok }) => !ok).map(({ name }) => name)
  const [first] = failed
  if (checks.length > 0 && first === undefined) return
  const code = Object.entries(CODES).find(([name]) => name === first)?.[1]
  throw new EvidenceRefused(code ?? 'hardware', failed)
}
