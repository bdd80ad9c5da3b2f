import { jwkThumbprint, type Es256Jwk } from '../protocol/jwk.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import type { TrustBundle } from '../protocol/trust-bundle.ts'
import { judge, type Check } from './check.ts'
import { milliseconds } from './clock.ts'
import {
  isSameBundle,
  verifyTrustBundle,
  type AcceptedBundle,
  type TrustBundleOptions,
} from './trust-bundle.ts'

export interface NewestBundle {
  readonly checks: readonly Check[]
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Absent where no other bundle was given, or where one was refused. */
  readonly bundle?: TrustBundle
  /** What to store as the next `lastAccepted`, with its text. */
  readonly accepted?: AcceptedBundle & { readonly jws: string }
}

const NO_NEWER_BUNDLE =
  "not_revoked: no bundle but the receipt's own was at hand, so nothing tells of later revocations"

/**
 * Finds the newest of the given bundles (compact JWS), for its revocations. An expired bundle still counts: revocations
 * do not lapse. Refused are a bundle that the release root did not sign, bundles that are all older than one accepted
 * before, and two different bundles of one version. `own` is the receipt's bundle: it is used where no other is given,
 * and must then not be older than the one accepted before.
 */
export async function findNewestBundle(
  texts: readonly string[],
  rootJwk: Es256Jwk,
  { own, ...options }: TrustBundleOptions & { readonly own: string },
): Promise<NewestBundle> {
  if (texts.length === 0) {
    const ownOnly = { checks: [], notes: [NO_NEWER_BUNDLE] }
    if (options.lastAccepted?.root !== (await jwkThumbprint(rootJwk))) return ownOnly
    const {
      bundle: _,
      accepted: __,
      ...judged
    } = await findNewestBundle([own], rootJwk, {
      ...options,
      own,
    })
    return { ...judged, notes: [...judged.notes, NO_NEWER_BUNDLE] }
  }
  const found: Candidate[] = []
  for (const jws of texts) {
    const candidate = await judgeCandidate(jws, rootJwk, options)
    if (typeof candidate === 'string') return refused(candidate)
    found.push(candidate)
  }
  const [newest] = found.toSorted((left, right) => right.accepted.version - left.accepted.version)
  if (newest === undefined) return refused('there is none')
  const { bundle, accepted } = newest
  const forked = forkedVersion([
    ...found.map((one) => one.accepted),
    ...(await acceptableOwn(own, rootJwk, options)),
    ...(options.lastAccepted?.root === accepted.root ? [options.lastAccepted] : []),
  ])
  if (forked !== undefined) return refused(`there are two different bundles of version ${forked}`)
  const { lastAccepted } = options
  if (lastAccepted?.root === accepted.root && lastAccepted.version > accepted.version) {
    return refused(
      `version ${lastAccepted.version} was seen before, and only ${accepted.version} is here`,
    )
  }
  const ended = milliseconds(bundle.expires_at) <= options.now
  const note = `newest_bundle: version ${bundle.version} expired at ${bundle.expires_at}; look for a newer one`
  return {
    checks: [judge('newest_bundle', undefined, `version ${bundle.version}, ${bundle.issued_at}`)],
    notes: ended ? [note] : [],
    bundle,
    accepted,
  }
}

/** The newest known bundle of a provider's root; `forked` where there are two different ones of the same version. */
export type KnownBundle = TrustBundle | 'forked'

/**
 * Finds the newest of these bundles (compact JWS) under a release root, expired or not, for its revocations. Bundles
 * that the root did not sign, or that are for other environments, are ignored.
 * @throws MalformedEvidence when one cannot be parsed
 */
export async function newestOf(
  texts: readonly string[],
  rootJwk: Es256Jwk,
  options: Pick<TrustBundleOptions, 'now' | 'environments'>,
): Promise<KnownBundle | undefined> {
  const judged = await Promise.all(
    texts.map((jws) => verifyTrustBundle(jws, rootJwk, { ...options, expired: 'accept' })),
  )
  if (forkedVersion(judged.flatMap(({ accepted }) => accepted ?? [])) !== undefined) return 'forked'
  return judged
    .flatMap(({ bundle }) => bundle ?? [])
    .toSorted((left, right) => right.version - left.version)[0]
}

/** The bundle in the receipt, unless the receipt's own checks refuse it anyway. */
async function acceptableOwn(
  jws: string,
  rootJwk: Es256Jwk,
  options: TrustBundleOptions,
): Promise<AcceptedBundle[]> {
  const judged = await judgeCandidate(jws, rootJwk, options)
  return typeof judged === 'string' ? [] : [judged.accepted]
}

/**
 * A version of which there are two different bundles: the holder of the root shows different ones to different parties.
 */
function forkedVersion(bundles: readonly AcceptedBundle[]): number | undefined {
  return bundles.find((one) =>
    bundles.some((other) => other.version === one.version && !isSameBundle(other, one)),
  )?.version
}

function refused(fault: string): NewestBundle {
  return { checks: [judge('newest_bundle', fault, '')], notes: [] }
}

interface Candidate {
  readonly bundle: TrustBundle
  readonly accepted: AcceptedBundle & { readonly jws: string }
}

/** Verifies a bundle, or says what is wrong with it. Versions are compared later, once all bundles are parsed. */
async function judgeCandidate(
  jws: string,
  rootJwk: Es256Jwk,
  { now, environments }: TrustBundleOptions,
): Promise<Candidate | string> {
  try {
    const judged = await verifyTrustBundle(jws, rootJwk, { now, environments, expired: 'accept' })
    if (judged.bundle !== undefined && judged.accepted !== undefined) {
      return { bundle: judged.bundle, accepted: { ...judged.accepted, jws } }
    }
    const failed = judged.checks.find(({ ok }) => !ok)
    return `${failed?.name}: ${failed?.detail}`
  } catch (error) {
    if (error instanceof MalformedEvidence) return error.message
    throw error
  }
}
