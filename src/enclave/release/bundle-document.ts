import type { JsonValue } from '../../protocol/canonical-json.ts'
import type { EcPoint } from '../../protocol/jwk.ts'
import { TRUST_BUNDLE_SCHEMA } from '../../protocol/trust-bundle.ts'

/** The members of a bundle that a person chooses: minimum firmware versions, policy, environment, revocations. */
export type BundleTemplate = { readonly [name: string]: JsonValue | undefined }

/** One accepted combination of guest and release. */
export interface AllowedGuest {
  /** Launch digest, 96 lowercase hex digits. */
  readonly measurement: string
  readonly workload: string
  readonly identityTag: string
}

export interface BundleParts {
  readonly template: BundleTemplate
  /** Must be greater than that of every earlier bundle of the same root. */
  readonly version: number
  /** Added to the combinations of the template. */
  readonly allowed: readonly AllowedGuest[]
  /** The key that signs manifests; undefined keeps the template's. */
  readonly manifestKey?: { readonly jwk: EcPoint; readonly days: number } | undefined
  readonly now: Date
  readonly days: number
}

const DAY_MS = 86_400_000

/** The key's validity starts one day earlier, because readers check it to the second and their clocks may be behind. */
const KEY_BACKDATED_DAYS = 1

/** Builds a bundle that is valid from now on. The signing step checks it against the schema. */
export function composeBundle(parts: BundleParts): BundleTemplate {
  const { template, version, manifestKey, now, days } = parts
  const entries = [...listOf(template['allowed_measurements']), ...parts.allowed.map(describeGuest)]
  return {
    ...template,
    schema: TRUST_BUNDLE_SCHEMA,
    version,
    issued_at: timestamp(now, 0),
    not_before: timestamp(now, 0),
    expires_at: timestamp(now, days),
    allowed_measurements: entries,
    allowed_identity_tags: [...new Set(entries.flatMap(tagOf))],
    ...(manifestKey === undefined ? {} : { delegated_keys: delegate(template, manifestKey, now) }),
  }
}

function describeGuest({ measurement, workload, identityTag }: AllowedGuest): JsonValue {
  return { measurement, workload, workload_identity_tag: identityTag }
}

function delegate(
  template: BundleTemplate,
  { jwk, days }: NonNullable<BundleParts['manifestKey']>,
  now: Date,
): JsonValue {
  const { kty, crv, x, y } = jwk
  return {
    ...objectOf(template['delegated_keys']),
    workload_manifest: {
      jwk: { kty, crv, x, y },
      not_before: timestamp(now, -KEY_BACKDATED_DAYS),
      not_after: timestamp(now, days),
    },
  }
}

function tagOf(entry: JsonValue): string[] {
  const tag = objectOf(entry)['workload_identity_tag']
  return typeof tag === 'string' ? [tag] : []
}

/** RFC 3339 in UTC, whole seconds. */
function timestamp(now: Date, daysLater: number): string {
  return `${new Date(now.getTime() + daysLater * DAY_MS).toISOString().slice(0, 19)}Z`
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

function objectOf(value: JsonValue | undefined): BundleTemplate {
  return isObject(value) ? value : {}
}

function isObject(value: JsonValue | undefined): value is BundleTemplate {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
