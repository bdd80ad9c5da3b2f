import type { Revocation, TrustBundle } from '../protocol/trust-bundle.ts'
import type { CheckName } from './check-names.ts'
import { firstFault } from './check.ts'
import { milliseconds } from './clock.ts'

/** The values that a bundle can revoke, in the bundle's notation. */
export interface Revocable {
  readonly measurement?: string
  readonly identityTag?: string
  /** RFC 7638 thumbprints. */
  readonly keys?: readonly (string | undefined)[]
}

/** Which revocations apply, and whether their start is considered. */
export interface RevocationRule {
  readonly bundles: readonly Pick<TrustBundle, 'revoked'>[]
  /**
   * Milliseconds since 1970: accepts a document made at this time if it was revoked only from a later time. The holder
   * of the key states that time, so it is undefined unless a person has decided to trust it.
   */
  readonly madeAt?: number | undefined
}

/** Describes the first revocation that covers one of these values; undefined where none does. */
export function revocationFault(
  { measurement, identityTag, keys = [] }: Revocable,
  { bundles, madeAt }: RevocationRule,
): string | undefined {
  const faults = bundles.flatMap(({ revoked }) => [
    faultOf('measurement', measurement, revoked.measurements, madeAt),
    faultOf('identity tag', identityTag, revoked.identity_tags, madeAt),
    ...keys.map((key) => faultOf('key', key, revoked.keys, madeAt)),
  ])
  return firstFault(...faults)
}

/**
 * A note on a revocation that covers one of these values, but is disregarded because of its start: something that a
 * person has decided to accept must not look as if it were not revoked. Empty where there is none.
 */
export function disregardedRevocation(
  check: CheckName,
  revocable: Revocable,
  rule: RevocationRule,
): readonly string[] {
  if (revocationFault(revocable, rule) !== undefined) return []
  const later = revocationFault(revocable, { bundles: rule.bundles })
  return later === undefined ? [] : [`${check}: ${later}; accepted as made before that`]
}

function faultOf(
  kind: string,
  value: string | undefined,
  list: readonly Revocation[],
  madeAt: number | undefined,
): string | undefined {
  const covering = list.map(withSince).find((entry) => {
    if (entry.value !== value) return false
    const later = entry.since !== undefined && milliseconds(entry.since) > (madeAt ?? Infinity)
    return !later
  })
  if (covering === undefined) return undefined
  const { since } = covering
  return `${kind} ${value} is revoked${since === undefined ? '' : ` since ${since}`}`
}

function withSince(entry: Revocation): { value: string; since?: string | undefined } {
  return typeof entry === 'string' ? { value: entry } : entry
}
