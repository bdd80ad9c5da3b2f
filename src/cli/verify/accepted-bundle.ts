import { readAcceptedBundle, writeAcceptedBundle } from '../../client/node/bundle-state.ts'
import type { Es256Jwk } from '../../protocol/jwk.ts'
import type { LogProofs } from '../../protocol/trust-bundle.ts'
import { verifyTrustBundle, type TrustBundleResult } from '../../verify/trust-bundle.ts'
import { acceptedEnvironments } from './environments.ts'
import { publishedBundle } from './release-trust.ts'
import type { RouterClient } from './router-client.ts'

/** Runs `work` after all work passed in earlier calls has ended. */
export type RunInTurn = <T>(work: () => Promise<T>) => Promise<T>

interface BundleOptions {
  readonly environment?: string | undefined
  readonly allowSimulated?: boolean | undefined
  readonly state: string
  /** For programs that accept bundles concurrently: the stored version must never decrease. */
  readonly inTurn?: RunInTurn | undefined
}

/** A trust bundle that a router published, with its proofs of inclusion in the transparency log. */
export interface PublishedTrust extends TrustBundleResult {
  readonly jws?: string
  readonly logProofs?: LogProofs | undefined
}

/**
 * Fetches, verifies and stores the bundle that the router publishes.
 * @throws InputError when it cannot be fetched
 * @throws MalformedEvidence when it cannot be parsed
 */
export async function obtainBundle(
  client: RouterClient,
  rootJwk: Es256Jwk,
  options: BundleOptions,
): Promise<PublishedTrust> {
  const fetched = await publishedBundle(client)
  if (fetched.jws === undefined) return fetched
  const trusted = await acceptBundle(fetched.jws, rootJwk, options)
  const { jws, logProofs } = fetched
  return { ...trusted, checks: [...fetched.checks, ...trusted.checks], jws, logProofs }
}

/** Verifies and stores a bundle that the caller already has. */
export function acceptBundle(
  jws: string,
  rootJwk: Es256Jwk,
  options: BundleOptions,
): Promise<TrustBundleResult> {
  const accept = () => judgeAndStore(jws, rootJwk, options)
  return options.inTurn === undefined ? accept() : options.inTurn(accept)
}

async function judgeAndStore(
  jws: string,
  rootJwk: Es256Jwk,
  options: BundleOptions,
): Promise<TrustBundleResult> {
  const result = await verifyTrustBundle(jws, rootJwk, {
    now: Date.now(),
    environments: acceptedEnvironments(options.environment, options.allowSimulated),
    lastAccepted: await readAcceptedBundle(options.state, rootJwk),
  })
  if (result.accepted !== undefined) {
    await writeAcceptedBundle(options.state, { ...result.accepted, jws })
  }
  return result
}
