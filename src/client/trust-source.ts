import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { LogProofs, TrustBundle } from '../protocol/trust-bundle.ts'
import type { Check } from '../verify/check.ts'
import { fetchTrustBundle } from '../verify/fetch-trust-bundle.ts'
import { verifyTrustBundle } from '../verify/trust-bundle.ts'
import { AttestationRefused, AttestationUnavailable } from './errors.ts'
import { addressOf, type BundleState, type Settings } from './options.ts'

/** A valid bundle, with the checks that it passed. */
export interface NewestTrust {
  readonly bundle: TrustBundle
  readonly checks: readonly Check[]
  /** The compact JWS. */
  readonly jws: string
  /** Proofs that the release is in a public log, where the router publishes any. */
  readonly logProofs: LogProofs | undefined
}

/** The source of the newest trust bundle. */
export interface TrustSource {
  /**
   * @throws AttestationRefused when the trust bundle is refused
   * @throws AttestationUnavailable when there is no trust bundle
   * @throws Error when the stored state cannot be read or written
   */
  newest(): Promise<NewestTrust>
}

/**
 * Fetches the bundle from the router each time, once for concurrent callers, and never accepts one older than the
 * stored one.
 */
export class RouterTrustSource implements TrustSource {
  readonly #settings: Settings
  readonly #state: BundleState
  readonly #fetch: typeof fetch
  #pending: Promise<NewestTrust> | undefined

  /** @param unproven fetches from the router before it is verified: a bundle is judged only by its signature */
  constructor(settings: Settings, state: BundleState, unproven: typeof fetch) {
    this.#settings = settings
    this.#state = state
    this.#fetch = unproven
  }

  newest(): Promise<NewestTrust> {
    this.#pending ??= this.#request().finally(() => (this.#pending = undefined))
    return this.#pending
  }

  async #request(): Promise<NewestTrust> {
    const { base, deps, environments, rootJwk } = this.#settings
    const address = addressOf(this.#settings, '/.well-known/trust.json')
    const fetched = await fetchTrustBundle(address.href, base.origin, this.#fetch).catch(
      unreachable,
    )
    // Read only now: the router decides how long its answer takes, and a newer bundle may have been stored in the
    // meantime.
    const lastAccepted = await this.#state.read(rootJwk)
    const { jws } = fetched
    if (jws === undefined) throw new AttestationRefused(fetched.checks)
    const result = await verifyTrustBundle(jws, rootJwk, {
      now: deps.now(),
      environments,
      lastAccepted,
    })
    const checks = [...fetched.checks, ...result.checks]
    const { bundle, accepted } = result
    if (bundle === undefined || accepted === undefined) throw new AttestationRefused(checks)
    if (lastAccepted?.sha256 !== accepted.sha256 || lastAccepted.root !== accepted.root) {
      await this.#state.write({ ...accepted, jws })
    }
    return { bundle, checks, jws, logProofs: fetched.logProofs }
  }
}

function unreachable(error: unknown): never {
  if (error instanceof MalformedEvidence) throw error
  throw new AttestationUnavailable('the router does not give its trust bundle', { cause: error })
}
