import { parseCompactJws } from '../protocol/compact-jws.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { es256JwkSchema, jwkThumbprint } from '../protocol/jwk.ts'
import { readDocument } from '../protocol/read-document.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { TRUST_BUNDLE_TYP, trustBundleSchema, type TrustBundle } from '../protocol/trust-bundle.ts'
import { firstFault, judge, verdict, type Check, type Verdict } from './check.ts'
import { PARTIES_DIFFER_MS, requireNumber, milliseconds } from './clock.ts'
import { checkJws } from './jws.ts'

const DOCUMENT = 'trust bundle'

/** The last accepted bundle of a root; relying parties store it between verifications. */
export interface AcceptedBundle {
  /** RFC 7638 thumbprint of the release root. */
  readonly root: string
  readonly version: number
  /** SHA-256 over the JWS text, lowercase hex. */
  readonly sha256: string
  /** The compact JWS, where it is known. */
  readonly jws?: string | undefined
}

/**
 * Whether both are the same statement. Anyone can make a second valid ECDSA signature from a given one (r, n - s), so
 * two texts that differ only in their signature count as one bundle.
 */
export function isSameBundle(left: AcceptedBundle, right: AcceptedBundle): boolean {
  if (left.jws === undefined || right.jws === undefined) return left.sha256 === right.sha256
  return signedPart(left.jws) === signedPart(right.jws)
}

function signedPart(jws: string): string {
  return jws.slice(0, jws.lastIndexOf('.'))
}

export interface TrustBundleOptions {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Environments whose bundles are accepted. */
  readonly environments: readonly string[]
  readonly lastAccepted?: AcceptedBundle | undefined
  /** Accepts an expired bundle, for its revocations; refused by default. */
  readonly expired?: 'accept'
}

export interface TrustBundleResult extends Verdict {
  /** Present only where every check holds, so that a refused bundle cannot be used by mistake. */
  readonly bundle?: TrustBundle
  /** What to store as the next `lastAccepted`; only where every check holds. */
  readonly accepted?: AcceptedBundle
}

/**
 * Verifies a trust bundle with the release root: the signature, the dates, the environment, and the version. Its
 * content is not read before its signature is verified.
 * @throws MalformedEvidence when the root key, the JWS or the bundle cannot be parsed
 * @throws TypeError when `now` is not a number
 */
export async function verifyTrustBundle(
  text: string,
  rootJwk: unknown,
  options: TrustBundleOptions,
): Promise<TrustBundleResult> {
  requireNumber('now', options.now)
  const root = readDocument(es256JwkSchema, rootJwk, 'release root key')
  const jws = parseCompactJws(text, DOCUMENT)
  const expectation = { document: 'trust_bundle', typ: [TRUST_BUNDLE_TYP], key: root } as const
  const signature = await checkJws(jws, expectation)
  if (!verdict(signature).ok) return verdict(signature)
  const bundle = readDocument(trustBundleSchema, parseStrictJson(jws.payload, DOCUMENT), DOCUMENT)
  const accepted = {
    root: await jwkThumbprint(root),
    version: bundle.version,
    sha256: await sha256Hex(text),
    jws: text,
  }
  const result = verdict([
    ...signature,
    checkDates(bundle, options),
    checkEnvironment(bundle, options.environments),
    checkVersion(accepted, options.lastAccepted),
  ])
  return result.ok ? { ...result, bundle, accepted } : result
}

function checkDates(bundle: TrustBundle, { now, expired }: TrustBundleOptions): Check {
  const { issued_at, not_before, expires_at } = bundle
  const fault = firstFault(
    milliseconds(issued_at) > now + PARTIES_DIFFER_MS && `issued in the future, at ${issued_at}`,
    milliseconds(not_before) > now + PARTIES_DIFFER_MS && `not in force before ${not_before}`,
    expired === undefined && milliseconds(expires_at) <= now && `expired at ${expires_at}`,
  )
  return judge('trust_bundle_dates', fault, `until ${expires_at}`)
}

function checkEnvironment({ environment }: TrustBundle, accepted: readonly string[]): Check {
  const fault = accepted.includes(environment)
    ? undefined
    : `made for ${environment}, not for ${accepted.join(' or ')}`
  return judge('trust_bundle_environment', fault, environment)
}

/**
 * Checks the version. Versions are compared only under the same root: bundles of another root are a separate history.
 */
function checkVersion(accepted: AcceptedBundle, last: AcceptedBundle | undefined): Check {
  const before = last?.root === accepted.root ? last : undefined
  const fault =
    before &&
    firstFault(
      accepted.version < before.version &&
        `version ${accepted.version} is older than ${before.version}, seen before`,
      accepted.version === before.version &&
        !isSameBundle(accepted, before) &&
        `another bundle of version ${accepted.version} was seen before`,
    )
  const history = before === undefined ? 'none seen before' : `${before.version} seen before`
  return judge('trust_bundle_version', fault, `version ${accepted.version}, ${history}`)
}
