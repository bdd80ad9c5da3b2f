import { utf8 } from '../../protocol/bytes.ts'
import { canonicalJson, type JsonValue } from '../../protocol/canonical-json.ts'
import { signCompactJws } from '../../protocol/compact-jws.ts'
import { MANIFEST_TYP, manifestSchema } from '../../protocol/manifest.ts'
import { TRUST_BUNDLE_TYP, trustBundleSchema } from '../../protocol/trust-bundle.ts'
import type { SigningKey } from './signing-key.ts'

/**
 * Checks a workload manifest and signs it.
 * @throws ZodError when the document does not have the form of its schema
 */
export function signManifest(manifest: JsonValue, key: SigningKey): Promise<string> {
  manifestSchema.parse(manifest)
  return sign(manifest, MANIFEST_TYP, key)
}

/**
 * Checks a trust bundle and signs it.
 * @throws ZodError when the document does not have the form of its schema
 */
export function signTrustBundle(bundle: JsonValue, root: SigningKey): Promise<string> {
  trustBundleSchema.parse(bundle)
  return sign(bundle, TRUST_BUNDLE_TYP, root)
}

/** Signs the document as written, without the defaults that a reader would add. */
function sign(document: JsonValue, typ: string, { kid, privateKey }: SigningKey): Promise<string> {
  return signCompactJws(utf8(canonicalJson(document)), { kid, typ, privateKey })
}
