import type { ProviderPolicy } from '../../protocol/provider-policy.ts'
import type { JudgeProviderHop } from '../receipt-provider.ts'
import { verifyIntelQuote } from '../tdx/quote.ts'
import { judgeRecorded, type RecordedOptions } from './judge-recorded.ts'
import { checkMessage } from './recorded-message.ts'
import { rejudgeHop } from './rejudge-hop.ts'

export interface ProviderJudgeOptions extends Omit<RecordedOptions, 'now' | 'verifyQuote'> {
  /** By default verifies under Intel's root. */
  readonly verifyQuote?: RecordedOptions['verifyQuote']
}

/**
 * Creates a judge that judges the provider's hop of receipts again, offline, under the caller's policy (`rejudgeHop`).
 */
export function providerJudge(
  policy: ProviderPolicy,
  { verifyQuote = verifyIntelQuote, ...options }: ProviderJudgeOptions,
): JudgeProviderHop {
  return rejudgeHop({
    maxAgeSeconds: policy.adapter === 'none' ? 0 : policy.max_age_seconds,
    judgeEvidence: (recorded, now) =>
      judgeRecorded(recorded, policy, { ...options, verifyQuote, now }),
    checkMessage,
  })
}
