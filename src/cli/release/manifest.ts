import { z } from 'zod'
import { WORKLOAD } from '../../protocol/envelope.ts'
import { signManifest } from '../../enclave/release/sign-documents.ts'
import type { SigningKey } from '../../enclave/release/signing-key.ts'
import type { JsonValue } from '../../protocol/canonical-json.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { MANIFEST_SCHEMA } from '../../protocol/manifest.ts'
import { ReleaseError } from './release-error.ts'

export interface ManifestParts {
  readonly version: string
  /** Lowercase hex. */
  readonly imageSha256: string
  readonly binarySha256: string
  readonly verifierSha256: string
  readonly metadata: Record<string, JsonValue>
}

export interface SignedManifest {
  readonly jws: string
  readonly identityTag: string
}

/** Signs the manifest of a release. Its tag is the digest of these exact bytes: sign once, and ship the file. */
export async function makeManifest(
  { version, imageSha256, binarySha256, verifierSha256, metadata }: ManifestParts,
  key: SigningKey,
): Promise<SignedManifest> {
  const manifest = {
    schema: MANIFEST_SCHEMA,
    workload: WORKLOAD,
    version,
    image_digest: `sha256:${imageSha256}`,
    binary_digest: `sha256:${binarySha256}`,
    verifier_digest: `sha256:${verifierSha256}`,
    build_metadata: metadata,
  }
  const jws = await signManifest(manifest, key)
  return { jws, identityTag: await sha256Hex(jws) }
}

/**
 * The `build_metadata` of a manifest from parsed JSON.
 * @throws ReleaseError when it is not a JSON object
 */
export function readMetadata(json: unknown): Record<string, JsonValue> {
  const parsed = z.record(z.string(), z.json()).safeParse(json)
  if (!parsed.success) throw new ReleaseError('the metadata is not a JSON object')
  return parsed.data
}
