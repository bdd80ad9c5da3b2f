import { simulatedMeasurement } from '../../enclave/snp/simulated-source.ts'
import type { BundleTemplate } from '../../enclave/release/bundle-document.ts'
import { signManifest } from '../../enclave/release/sign-documents.ts'
import type { SigningKey } from '../../enclave/release/signing-key.ts'
import { toHex } from '../../protocol/bytes.ts'
import { parseCompactJws } from '../../protocol/compact-jws.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { jwkThumbprint } from '../../protocol/jwk.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { trustBundleSchema } from '../../protocol/trust-bundle.ts'
import { issueBundle, readTemplate, type SignedBundle } from './bundle.ts'
import { ReleaseError } from './release-error.ts'

export interface Rotation {
  readonly previous: SignedBundle
  readonly now: Date
  /** How long the new bundle is valid. */
  readonly days: number
}

export interface ManifestKeyRotation extends Rotation {
  readonly root: SigningKey
  readonly newKey: SigningKey
  readonly keyDays: number
  readonly manifestJws: string
  /** Whether to revoke the old key and the old tag; with `since`, only from that time on. */
  readonly revoke: false | { readonly since?: Date | undefined }
}

/**
 * Replaces the key that signs manifests: the manifest is signed again, which gives it a new tag, and every entry of
 * the old tag moves to the new one. Instances with the old manifest stop verifying under the new bundle.
 */
export async function rotateManifestKey(
  rotation: ManifestKeyRotation,
): Promise<{ manifestJws: string; bundle: string }> {
  const { previous, root, newKey, keyDays, now, days } = rotation
  const content = parseCompactJws(rotation.manifestJws, 'workload manifest').payload
  const manifest = readTemplate(parseStrictJson(content, 'workload manifest'))
  const manifestJws = await signManifest(manifest, newKey)
  const [oldTag, newTag] = await Promise.all([
    sha256Hex(rotation.manifestJws),
    sha256Hex(manifestJws),
  ])
  const moved = await moveEntries(previous.content, oldTag, newTag)
  const template =
    rotation.revoke === false ? moved : await withdraw(moved, oldTag, rotation.revoke)
  const bundle = await issueBundle(
    {
      template,
      version: previous.accepted.version + 1,
      allowed: [],
      manifestKey: { jwk: newKey.publicJwk, days: keyDays },
      now,
      days,
    },
    { root, previous, manifestJws },
  )
  return { manifestJws, bundle }
}

/** Signs the same bundle with a new root. Relying parties must receive the new root in the same way as the old one. */
export async function rotateRoot(rotation: Rotation & { newRoot: SigningKey }): Promise<string> {
  const { previous, newRoot, now, days } = rotation
  const version = previous.accepted.version + 1
  return issueBundle(
    { template: previous.content, version, allowed: [], now, days },
    { root: newRoot },
  )
}

async function moveEntries(
  content: BundleTemplate,
  oldTag: string,
  newTag: string,
): Promise<BundleTemplate> {
  const { allowed_measurements: entries } = trustBundleSchema.parse(content)
  if (!entries.some((entry) => entry.workload_identity_tag === oldTag)) {
    throw new ReleaseError('the bundle does not allow the release of this manifest')
  }
  const [oldSimulated, newSimulated] = await Promise.all(
    [oldTag, newTag].map(async (tag) => toHex(await simulatedMeasurement(tag))),
  )
  const moved = entries.map((entry) => {
    if (entry.workload_identity_tag !== oldTag) return entry
    const { measurement, ...rest } = entry
    const follows = measurement === oldSimulated && newSimulated !== undefined
    return {
      ...rest,
      measurement: follows ? newSimulated : measurement,
      workload_identity_tag: newTag,
    }
  })
  return readTemplate({ ...content, allowed_measurements: moved })
}

async function withdraw(
  content: BundleTemplate,
  oldTag: string,
  { since }: { readonly since?: Date | undefined },
): Promise<BundleTemplate> {
  const { revoked, delegated_keys: keys } = trustBundleSchema.parse(content)
  const oldKey = keys.workload_manifest?.jwk
  const entry = (value: string) =>
    since === undefined ? value : { value, since: since.toISOString() }
  return {
    ...content,
    revoked: {
      ...revoked,
      identity_tags: [...revoked.identity_tags, entry(oldTag)],
      keys:
        oldKey === undefined ? revoked.keys : [...revoked.keys, entry(await jwkThumbprint(oldKey))],
    },
  }
}
