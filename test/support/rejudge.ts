import type { ProviderProofs } from '../../src/enclave/proofs.ts'
import { copyBytes } from '../../src/protocol/bytes.ts'
import { providerPolicySchema } from '../../src/protocol/provider-policy.ts'
import {
  providerJudge,
  type ProviderJudgeOptions,
} from '../../src/verify/providers/provider-judge.ts'
import type { JudgedHop, ProviderHop } from '../../src/verify/receipt-provider.ts'

export const EXCHANGE = { requestDigest: 'e1'.repeat(32), responseDigest: 'e2'.repeat(32) }

/**
 * Judges the hop that the daemon would sign into a receipt for this evidence, from what it would store with it and
 * nothing else, as an auditor with a policy of their own does.
 */
export function rejudge(
  proofs: Pick<ProviderProofs, 'hop' | 'evidence'>,
  digest: string,
  policy: Readonly<Record<string, unknown>>,
  options: Partial<ProviderJudgeOptions> = {},
): Promise<JudgedHop> {
  const block = proofs.hop('nova', digest)?.block
  const raw = proofs.evidence(digest)
  if (block === undefined || raw === undefined) throw new Error('no such proof')
  const hop: ProviderHop = {
    block,
    evidence: new Map([[digest, copyBytes(raw)]]),
    exchange: EXCHANGE,
    at: Date.now(),
  }
  return rejudgeHop(hop, policy, options)
}

export function rejudgeHop(
  hop: ProviderHop,
  policy: Readonly<Record<string, unknown>>,
  options: Partial<ProviderJudgeOptions> = {},
): Promise<JudgedHop> {
  return providerJudge(providerPolicySchema.parse(policy), { simulated: 'refuse', ...options })(hop)
}

/** The checks that fail, as `name: why`. */
export function failuresOf({ checks }: JudgedHop): string[] {
  return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
}
