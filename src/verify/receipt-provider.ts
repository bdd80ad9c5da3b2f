import type { AttestationBlock, ReceiptClaims } from '../protocol/receipt.ts'
import { judge, prefixed, type Check } from './check.ts'
import type { EvidenceBySha256 } from './hop-evidence.ts'
import type { SimulatedPolicy } from './snp/anchors.ts'

/** The hop of a provider as recorded in a receipt, with everything needed to judge it again. */
export interface ProviderHop {
  readonly block: AttestationBlock
  /** Candidates; `findEvidence` selects the one that the block names. */
  readonly evidence: EvidenceBySha256
  /** Digests of the provider's request and response: SHA-256 in lowercase hex, from the receipt. */
  readonly exchange: { readonly requestDigest: string; readonly responseDigest: string }
  /** When the receipt was issued, in milliseconds since 1970: evidence is judged as of then. */
  readonly at: number
}

/** The result of judging a hop again. It holds where every check does; an empty list does not hold. */
export interface JudgedHop {
  readonly checks: readonly Check[]
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Whether the evidence is of a simulated platform, which was allowed. */
  readonly simulated: boolean
}

/**
 * Judges a provider's hop again from its evidence, under the policy of the verifier rather than the router's.
 * Evidence that is missing, unreadable or of the wrong kind is a failed check.
 */
export type JudgeProviderHop = (hop: ProviderHop) => Promise<JudgedHop>

export interface ProviderOptions {
  /** Without it the hop is reported as recorded by the router, and proves nothing. */
  readonly judgeProviderHop?: JudgeProviderHop | undefined
  /** Fails a receipt whose provider was not judged again here and attested. */
  readonly requireProvider?: boolean
  readonly evidence: EvidenceBySha256
  readonly simulated?: SimulatedPolicy
}

/** How much is proven about the provider once the receipt holds. */
export type ProviderStatus = 'unattested' | 'recorded' | 'rejudged'

export interface ProviderResult extends JudgedHop {
  readonly standing: ProviderStatus
}

/** Judges the provider's hop of a receipt as far as the caller has a policy for it. */
export async function checkProvider(
  claims: ReceiptClaims,
  options: ProviderOptions,
): Promise<ProviderResult> {
  const block = claims.inference_attestation ?? claims.provider_attestation
  const name = claims.inference_attestation ? 'inference_attestation' : 'provider_attestation'
  const { judgeProviderHop, evidence, requireProvider = false } = options
  const without = (standing: 'unattested' | 'recorded', fault: string, more: Check[] = []) => ({
    checks: requireProvider ? [...more, judge('provider_attested', fault, '')] : more,
    notes: [`${name}: ${fault}`],
    simulated: block?.attestation_strength === 'simulated',
    standing,
  })
  if (block?.verified !== true) {
    const mode = block?.verification_mode ?? 'no block'
    const simulated = block === undefined ? [] : refuseSimulated(block, options.simulated)
    return without(
      'unattested',
      `the provider was not attested (${mode})`,
      prefixed(name, simulated),
    )
  }
  if (judgeProviderHop === undefined) {
    const recorded = `recorded by the router, not re-judged (${block.verification_mode})`
    return without('recorded', recorded, prefixed(name, refuseSimulated(block, options.simulated)))
  }
  const exchange = { requestDigest: claims.request_digest, responseDigest: claims.response_digest }
  const hop = await judgeProviderHop({ block, evidence, exchange, at: claims.iat * 1000 })
  const platform = hop.simulated ? { attestation_strength: 'simulated' } : block
  const simulated = refuseSimulated(platform, options.simulated)
  const holds = hop.checks.length > 0 && [...hop.checks, ...simulated].every(({ ok }) => ok)
  const fault = holds ? undefined : 'it does not hold under the given policy'
  return {
    checks: [
      ...prefixed(name, [...hop.checks, ...simulated]),
      judge('provider_attested', fault, 'judged again here'),
    ],
    notes: hop.notes.map((note) => `${name}: ${note}`),
    simulated: hop.simulated,
    standing: 'rejudged',
  }
}

/**
 * Refuses a hop that the router itself calls simulated, whether or not it is judged again, and one that is found to be
 * simulated. Where simulated platforms are allowed, the check says that this is one.
 */
function refuseSimulated(
  { attestation_strength: strength }: Pick<AttestationBlock, 'attestation_strength'>,
  simulated: SimulatedPolicy = 'refuse',
): Check[] {
  if (strength !== 'simulated') return []
  const fault = simulated === 'refuse' ? 'a simulated platform, and none is allowed' : undefined
  return [judge('simulated_platform', fault, 'allowed')]
}
