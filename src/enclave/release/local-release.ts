import type { LocalRelease } from '../../protocol/boot.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { MANIFEST_SCHEMA, type Manifest } from '../../protocol/manifest.ts'
import { WORKLOAD } from '../../protocol/envelope.ts'
import { composeBundle } from './bundle-document.ts'
import type { Release } from './release.ts'
import { signManifest, signTrustBundle } from './sign-documents.ts'
import { describePublicKey, makeSigningKey } from './signing-key.ts'

/** Longer than any local stack runs. */
const VALIDITY_DAYS = 397

/** The build that the manifest of a local stack names. */
export interface LocalBuild {
  readonly version: string
  /** SHA-256 over the daemon's sources, instead of an image. */
  readonly sourceSha256: string
  /** SHA-256 of the worker's bundle. */
  readonly bundleSha256: string
}

export interface LocalReleaseInputs {
  readonly build: LocalBuild
  /** Returns the launch digest to allow, lowercase hex, for an identity tag. */
  readonly measure: (identityTag: string) => Promise<string>
  readonly now: Date
}

/**
 * Generates a temporary release root, and signs a manifest and a bundle with it, in the same form as the release
 * commands. The private keys cannot be exported and are dropped here: nothing else is ever signed with this root.
 */
export async function makeLocalRelease({
  build,
  measure,
  now,
}: LocalReleaseInputs): Promise<Release> {
  const [root, manifestKey] = await Promise.all([
    makeSigningKey({ extractable: false }),
    makeSigningKey({ extractable: false }),
  ])
  const manifestJws = await signManifest(describeBuild(build), manifestKey)
  const identityTag = await sha256Hex(manifestJws)
  const bundle = composeBundle({
    template: { environment: 'local', tcb_floor: NO_FLOOR },
    version: Math.floor(now.getTime() / 1000),
    allowed: [{ measurement: await measure(identityTag), workload: WORKLOAD, identityTag }],
    manifestKey: { jwk: manifestKey.publicJwk, days: VALIDITY_DAYS },
    now,
    days: VALIDITY_DAYS,
  })
  const bundleJws = await signTrustBundle(bundle, root)
  return { rootPublicJwk: root.publicJwk, bundleJws, manifestJws, identityTag }
}

/** Restores the release that an earlier start of the same local stack made. */
export async function adoptLocalRelease(kept: LocalRelease): Promise<Release> {
  return {
    rootPublicJwk: await describePublicKey(kept.rootPublicJwk),
    bundleJws: kept.bundleJws,
    manifestJws: kept.manifestJws,
    identityTag: await sha256Hex(kept.manifestJws),
  }
}

/** A local stack requires no minimum firmware; a real bundle has floors. */
const NO_FLOOR = {
  milan: { bootloader: 0, tee: 0, snp: 0, microcode: 0 },
  genoa: { bootloader: 0, tee: 0, snp: 0, microcode: 0 },
  turin: { fmc: 0, bootloader: 0, tee: 0, snp: 0, microcode: 0 },
}

function describeBuild({ version, sourceSha256, bundleSha256 }: LocalBuild) {
  return {
    schema: MANIFEST_SCHEMA,
    workload: WORKLOAD,
    version,
    image_digest: `sha256:${sourceSha256}`,
    binary_digest: `sha256:${bundleSha256}`,
    build_metadata: {
      build_type: 'local stack',
      image_digest_of: 'the source tree',
      reproducible: false,
    },
  } satisfies Manifest
}
