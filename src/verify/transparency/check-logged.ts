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

/**
 * Checks that both documents of a release are in the log of the policy. A missing proof is a failure: a caller with a
 * policy requires the proof.
 * @param now milliseconds since the epoch
 */
export function checkLogged(
  documents: ReleaseDocuments,
  proofs: LogProofs | undefined,
  policy: LogPolicy,
  now: number,
): Check[] {
  const seconds = Math.floor(now / 1_000)
  return [
    judgeEntry(
      'trust_bundle_logged',
      documents.trustBundleJws,
      proofs?.trust_bundle,
      policy,
      seconds,
    ),
    judgeEntry('manifest_logged', documents.manifestJws, proofs?.manifest, policy, seconds),
  ]
}

function judgeEntry(
  name: 'trust_bundle_logged' | 'manifest_logged',
  jws: string,
  proof: string | undefined,
  policy: LogPolicy,
  seconds: number,
): Check {
  if (proof === undefined) return judge(name, 'no_proof: the router publishes no proof of it', '')
  try {
    const { index, checkpoint, witnesses } = checkTlogProof(proof, utf8(jws), policy, seconds)
    const detail = `entry ${index} of ${checkpoint.size} in ${checkpoint.origin}, ${witnesses.length} witnesses`
    return judge(name, undefined, detail)
  } catch (error) {
    if (error instanceof TransparencyError)
      return judge(name, `${error.fault}: ${error.message}`, '')
    throw error
  }
}
