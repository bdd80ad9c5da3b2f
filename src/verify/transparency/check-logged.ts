import { utf8 } from '../../protocol/bytes.ts'
import type { LogProofs } from '../../protocol/trust-bundle.ts'
import { judge, type Check } from '../check.ts'
import type { LogPolicy } from './log-policy.ts'
import { checkTlogProof } from './tlog-proof.ts'
import { TransparencyError } from './transparency-error.ts'

/** The documents of a release, as compact JWS. */
export interface ReleaseDocuments {
  readonly trustBundleJws: string
  readonly manifestJws: string
}

export interface LoggedResult {
  readonly checks: readonly Check[]
  /**
   * When the first of the two proofs becomes too old for the policy, in milliseconds since the epoch; infinite without
   * a limit.
   */
  readonly endsAt: number
}

/**
 * Checks that both documents of a release are in the log of the policy. A missing proof is a failure: a caller that
 * passes a policy requires the proof.
 * @param now milliseconds since the epoch
 */
export function checkLogged(
  documents: ReleaseDocuments,
  proofs: LogProofs | undefined,
  policy: LogPolicy,
  now: number,
): LoggedResult {
  const seconds = Math.floor(now / 1_000)
  const judged = [
    judgeEntry(
      'trust_bundle_logged',
      documents.trustBundleJws,
      proofs?.trust_bundle,
      policy,
      seconds,
    ),
    judgeEntry('manifest_logged', documents.manifestJws, proofs?.manifest, policy, seconds),
  ]
  return {
    checks: judged.map(({ check }) => check),
    endsAt: Math.min(...judged.map(({ until }) => until)) * 1_000,
  }
}

interface JudgedEntry {
  readonly check: Check
  /** Seconds since the epoch. */
  readonly until: number
}

function judgeEntry(
  name: 'trust_bundle_logged' | 'manifest_logged',
  jws: string,
  proof: string | undefined,
  policy: LogPolicy,
  seconds: number,
): JudgedEntry {
  const failed = (fault: string) => ({ check: judge(name, fault, ''), until: -Infinity })
  if (proof === undefined) return failed('no_proof: the router publishes no proof of it')
  try {
    const { index, checkpoint, witnesses, until } = checkTlogProof(
      proof,
      utf8(jws),
      policy,
      seconds,
    )
    const detail = `entry ${index} of ${checkpoint.size} in ${checkpoint.origin}, ${witnesses.length} witnesses`
    return { check: judge(name, undefined, detail), until }
  } catch (error) {
    if (error instanceof TransparencyError) return failed(`${error.fault}: ${error.message}`)
    throw error
  }
}
