import type { PolicyOf } from '../protocol/provider-policy.ts'
import { judge } from './check.ts'
import type { EnvelopeTrust } from './hop-envelope.ts'
import type { KnownBundle } from './newest-bundle.ts'
import { judgeRecordedEnvelope, releaseRootPolicy } from './providers/envelope.ts'
import { rejudgeHop } from './providers/rejudge-hop.ts'
import type { JudgeProviderHop } from './receipt-provider.ts'
import type { Anchor, SimulatedPolicy } from './snp/anchors.ts'

/** The operator of the provider's hosts. */
export interface EnvelopeProviderTrust extends Omit<EnvelopeTrust, 'newest'> {
  readonly newest?: KnownBundle | undefined
}

/** Requirements on a provider in addition to its release root; defaults as in the configuration (docs/egress.md). */
export interface EnvelopeProviderOptions extends Partial<
  Pick<PolicyOf<'envelope'>, 'nonce' | 'allowed_host_data' | 'max_age_seconds'>
> {
  /** By default AMD's roots. */
  readonly anchors?: readonly Anchor[]
  /** By default simulated platforms are refused. */
  readonly simulated?: SimulatedPolicy
}

/**
 * Creates a judge for hops of providers that publish attestation envelopes of this form, under their release root, with
 * the same code and policy as the command and the router itself.
 * @throws MalformedEvidence when an option is not valid in the policy
 */
export function envelopeProviderJudge(
  { rootJwk, environments, newest, acceptBeforeRevocation }: EnvelopeProviderTrust,
  { anchors, simulated = 'refuse', ...more }: EnvelopeProviderOptions = {},
): JudgeProviderHop {
  const policy = releaseRootPolicy(rootJwk, { ...more, environments: [...environments] })
  return rejudgeHop({
    maxAgeSeconds: policy.max_age_seconds,
    judgeEvidence: (recorded, now) =>
      judgeRecordedEnvelope(recorded, policy, {
        now,
        simulated,
        newest,
        acceptBeforeRevocation,
        ...(anchors && { anchors }),
      }),
    // Envelopes bind no key that signs completions.
    checkMessage: async ({ message_attestation: proof }) =>
      proof?.['status'] === 'verified'
        ? [judge('message_signature', 'no key that the evidence vouches for signs messages', '')]
        : [],
  })
}
