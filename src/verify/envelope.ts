import { toHex } from '../protocol/bytes.ts'
import { REPORT_DATA_V2, WORKLOAD, type Envelope } from '../protocol/envelope.ts'
import type { Manifest } from '../protocol/manifest.ts'
import type { TrustBundle } from '../protocol/trust-bundle.ts'
import { firstFault, judge, verdict, type Check, type Verdict } from './check.ts'
import { PARTIES_DIFFER_MS, requireNumber, milliseconds } from './clock.ts'
import { verifyEnvelopeHardware } from './envelope-hardware.ts'
import { checkManifest, checkTag, revocationRule, type Trust } from './manifest.ts'
import { disregardedRevocation, revocationFault } from './revoked.ts'
import type { VekChain } from './snp/chain.ts'
import { policyOfBundle } from './snp/policy.ts'
import type { SnpReport } from './snp/report.ts'
import type { SnpOptions } from './snp/verify-snp.ts'

export interface EnvelopeOptions extends Omit<SnpOptions, 'policy'> {
  /** A bundle that `verifyTrustBundle` has accepted, and the root under which it was accepted. */
  readonly trust: Trust
  /**
   * The workload that the guest must run; by default the router. Null accepts any workload that the bundle allows for
   * this guest.
   */
  readonly workload?: string | null
  /**
   * HOST_DATA values to accept in addition to zero, 64 lowercase hex digits each, where the bundle's entry names no
   * value.
   */
  readonly allowedHostData?: readonly string[] | undefined
  /** `past`: the envelope may be from any time and any connection, as in a receipt. */
  readonly live: LiveExpectations | 'past'
}

/**
 * What proves that the envelope is current: the caller's nonce, the operator's clock, or nothing because the caller
 * accepts a past one.
 */
export type EnvelopeFreshness = 'nonce' | 'operators_clock' | 'not_judged'

/** What the caller expects of a current envelope. */
export interface LiveExpectations {
  /**
   * The nonce that was sent, 64 lowercase hex digits: only a nonce proves when the report was made. `null` accepts an
   * envelope as fresh by `issued_at`, which was written by the operator's clock and is not signed.
   */
  readonly nonce: string | null
  /** Maximum age in seconds, in addition to the envelope's own limit. */
  readonly maxAgeSeconds?: number
  /** SHA-256 over the SPKI of the current connection's peer, lowercase hex. */
  readonly tlsSpkiSha256?: string | undefined
  /** SHA-256 of the HPKE key configuration that the host serves, lowercase hex. */
  readonly hpkeKeyConfigSha256?: string | undefined
}

/** The note on every envelope that is accepted as fresh without a nonce. */
const OPERATORS_CLOCK =
  "freshness: it rests on the operator's clock, for the report was not asked for with a nonce"

export interface EnvelopeResult extends Verdict {
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** The notes about revocations that `acceptBeforeRevocation` disregards. */
  readonly disregarded: readonly string[]
  readonly report?: SnpReport
  readonly chain?: VekChain
  readonly manifest?: Manifest
  /**
   * When the verdict ends, in milliseconds since 1970: the earliest end of the envelope's age and the caller's limit on
   * it, the bundle, its entry for this guest, the key that signed the manifest, a certificate of the chip, and AMD's
   * revocation list.
   */
  readonly endsAt: number
  /** Only `nonce` proves that the router runs now; the other two do not prove when it ran. */
  readonly freshness: EnvelopeFreshness
}

/**
 * Verifies an attestation envelope: the hardware, the tag and the manifest, whether guest and release are allowed, and
 * freshness, nonce and connection.
 * @throws MalformedEvidence when the report, a certificate, the manifest or a base64 member cannot be parsed
 * @throws TypeError when a time or an age is not a number, or when `live` is missing
 */
export async function verifyEnvelope(
  envelope: Envelope,
  options: EnvelopeOptions,
): Promise<EnvelopeResult> {
  const { trust, live, allowedHostData: _, workload = WORKLOAD, ...snp } = options
  requireNumber('now', options.now)
  const freshness = freshnessOf(live)
  if (live !== 'past' && live.maxAgeSeconds !== undefined) {
    requireNumber('maxAgeSeconds', live.maxAgeSeconds)
  }
  const hardware = await verifyEnvelopeHardware(envelope, {
    ...snp,
    policy: policyOfBundle(trust.bundle),
  })
  const { workload_identity_manifest_jws: manifestJws } = envelope
  const expected = workload === null ? envelope.workload : workload
  const signed = await checkManifest(manifestJws, expected, options)
  const allowed =
    hardware.report === undefined
      ? NOT_ALLOWED
      : checkAllowed({ ...envelope, workload: expected }, hardware.report, options)
  const checks = [
    ...hardware.checks,
    await checkTag(manifestJws, envelope.workload_identity_tag),
    ...signed.checks,
    ...allowed.checks,
    ...(live === 'past' ? [] : checkLive(envelope, live, options.now)),
  ]
  const clock = freshness === 'operators_clock' ? [OPERATORS_CLOCK] : []
  const disregarded = [...signed.disregarded, ...allowed.disregarded]
  const maxAgeSeconds = live === 'past' ? undefined : live.maxAgeSeconds
  const endsAt = Math.min(
    allowed.until,
    hardware.endsAt ?? Infinity,
    endOf(envelope, trust.bundle, maxAgeSeconds),
  )
  return {
    ...hardware,
    ...verdict(checks),
    notes: [...hardware.notes, ...disregarded, ...clock],
    disregarded,
    freshness,
    endsAt,
    ...(signed.manifest && { manifest: signed.manifest }),
  }
}

function endOf(envelope: Envelope, bundle: TrustBundle, maxAgeSeconds = Infinity): number {
  const age = Math.min(envelope.max_age_seconds, maxAgeSeconds)
  const delegated = bundle.delegated_keys.workload_manifest
  return Math.min(
    milliseconds(envelope.issued_at) + age * 1000,
    milliseconds(bundle.expires_at),
    ...(delegated ? [milliseconds(delegated.not_after)] : []),
  )
}

interface Allowed {
  readonly checks: readonly Check[]
  /** Revocations that were not considered. */
  readonly disregarded: readonly string[]
  /** The end of the bundle's entry that allows the guest. */
  readonly until: number
}

const NOT_ALLOWED: Allowed = { checks: [], disregarded: [], until: -Infinity }

const NO_HOST_DATA = '0'.repeat(64)

/** @throws TypeError when an untyped caller omits `live`, which must not count as a current router */
function freshnessOf(live: LiveExpectations | 'past' | undefined): EnvelopeFreshness {
  if (live === undefined) {
    throw new TypeError("live is missing: say what is expected of the connection, or 'past'")
  }
  if (live === 'past') return 'not_judged'
  return live.nonce === null ? 'operators_clock' : 'nonce'
}

/**
 * Checks that one entry of the bundle allows guest, workload and release together; a revocation takes precedence over
 * any entry.
 */
function checkAllowed(
  envelope: Envelope,
  report: SnpReport,
  { trust, now, allowedHostData = [] }: EnvelopeOptions,
): Allowed {
  const { bundle } = trust
  const measurement = toHex(report.measurement)
  const hostData = toHex(report.hostData)
  const { workload_identity_tag: tag, workload } = envelope
  const ofGuest = bundle.allowed_measurements.filter((entry) => entry.measurement === measurement)
  const ofRelease = ofGuest.filter(
    (entry) => entry.workload === workload && entry.workload_identity_tag === tag,
  )
  // The host sets HOST_DATA, and may use it to choose what the guest runs, so a value that the bundle does not name is
  // refused.
  const unpinned = [NO_HOST_DATA, ...allowedHostData]
  const ofHost = ofRelease.filter(({ host_data: pinned }) =>
    (pinned === undefined ? unpinned : [pinned]).includes(hostData),
  )
  const until = Math.max(
    ...ofHost.map(({ not_after: end }) => (end === undefined ? Infinity : milliseconds(end))),
  )
  const allowed = firstFault(
    ofGuest.length === 0 && `measurement ${measurement} is not in the bundle`,
    ofRelease.length === 0 && 'the measurement is allowed, but not for this workload and release',
    ofHost.length === 0 && `host data ${hostData} is not allowed`,
    until <= now && 'the entry for this measurement has ended',
    !bundle.allowed_identity_tags.includes(tag) && `identity tag ${tag} is not in the bundle`,
  )
  const keys = [envelope.report_data_binding?.receipt_key_thumbprint]
  const revocable = { measurement, identityTag: tag, keys }
  const rule = revocationRule(trust, now)
  const revoked = revocationFault(revocable, rule)
  const newest = trust.newest ?? bundle
  const checks = [
    judge('measurement_allowed', allowed, `${measurement} as ${workload}`),
    judge('not_revoked', revoked, `not by bundle version ${newest.version}`),
  ]
  return { checks, disregarded: disregardedRevocation('not_revoked', revocable, rule), until }
}

function checkLive(envelope: Envelope, live: LiveExpectations, now: number): Check[] {
  const checks = [checkFreshness(envelope, live.maxAgeSeconds, now)]
  if (live.nonce !== null) checks.push(checkNonce(envelope, live.nonce))
  if (live.tlsSpkiSha256 !== undefined) {
    const same = envelope.tls_spki_sha256 === live.tlsSpkiSha256
    const fault = same ? undefined : `the connection has the key ${live.tlsSpkiSha256}`
    checks.push(judge('tls_key', fault, live.tlsSpkiSha256))
  }
  if (live.hpkeKeyConfigSha256 !== undefined) {
    checks.push(checkHpkeKey(envelope, live.hpkeKeyConfigSha256))
  }
  return checks
}

function checkHpkeKey({ report_data_binding: binding }: Envelope, served: string): Check {
  const bound = binding?.label === REPORT_DATA_V2 ? binding.hpke_key_config_sha256 : ''
  const fault = firstFault(
    bound === '' && 'the report binds no HPKE key',
    bound !== served && `the served key configuration has the digest ${served}`,
  )
  return judge('hpke_key', fault, served)
}

/** The nonce in a report that was requested without one (`bindingDigest`); it proves as little as a missing nonce. */
const NO_NONCE = /^0+$/

/** A missing nonce, where one is required, fails like a wrong one: an untyped caller may omit it. */
function checkNonce({ report_data_binding: binding }: Envelope, nonce: unknown): Check {
  const sent = typeof nonce === 'string' && nonce !== '' && !NO_NONCE.test(nonce)
  const fault = firstFault(
    !sent && 'no nonce was asked for, so nothing proves when the report was made',
    binding?.nonce !== nonce && 'the report was not made for this nonce',
  )
  return judge('nonce', fault, String(nonce))
}

function checkFreshness(
  { issued_at: issuedAt, max_age_seconds: stated }: Envelope,
  limit: number | undefined,
  now: number,
): Check {
  const maxAge = Math.min(stated, limit ?? stated)
  const age = now - milliseconds(issuedAt)
  const fault = firstFault(
    age < -PARTIES_DIFFER_MS && `issued in the future, at ${issuedAt}`,
    age > maxAge * 1000 + PARTIES_DIFFER_MS && `issued at ${issuedAt}, more than ${maxAge} s ago`,
  )
  return judge('freshness', fault, `issued at ${issuedAt}`)
}
