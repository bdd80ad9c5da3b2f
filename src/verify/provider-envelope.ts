import { checkEnvelopeHop, type EnvelopeTrust } from './hop-envelope.ts'
import type { JudgeProviderHop } from './receipt-provider.ts'
import type { SnpOptions } from './snp/verify-snp.ts'

/** Judges hops of providers that publish attestation envelopes of this form, under their release root. */
export function envelopeProviderJudge(
  trust: EnvelopeTrust,
  options: Omit<SnpOptions, 'policy' | 'now'> = {},
): JudgeProviderHop {
  return ({ block, evidence, at }) =>
    checkEnvelopeHop(block, { ...options, trust, evidence, now: at })
}
