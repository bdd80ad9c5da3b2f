import type { BillingLimits } from '../../protocol/stream-record.ts'
import { billedUsage, type BillingBound, type Produced } from './billed-usage.ts'
import type { TokenUsage } from './token-usage.ts'

/** The limits of what a request is billed, as they are passed to the daemon. */
export function billingLimits(bound: BillingBound): BillingLimits {
  return {
    prompt_estimate: bound.promptEstimate,
    max_prompt_tokens: bound.promptTokens,
    max_completion_tokens: bound.completionTokens,
  }
}

/** The token counts that the worker bills for an answer that the daemon writes. */
export function usageAsBilled(produced: Produced, billing: BillingLimits): TokenUsage {
  const bound = {
    promptEstimate: billing.prompt_estimate,
    promptTokens: billing.max_prompt_tokens,
    completionTokens: billing.max_completion_tokens,
  }
  return billedUsage(produced, bound).usage
}
