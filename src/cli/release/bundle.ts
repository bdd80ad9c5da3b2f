import { z } from 'zod'
import {
  composeBundle,
  type BundleParts,
  type BundleTemplate,
} from '../../enclave/release/bundle-document.ts'
import { signTrustBundle } from '../../enclave/release/sign-documents.ts'
import type { PublicSigningJwk, SigningKey } from '../../enclave/release/signing-key.ts'
import { parseCompactJws } from '../../protocol/compact-jws.ts'
import { WORKLOAD } from '../../protocol/envelope.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import {
  publishedTrustBundleSchema,
  TRUST_BUNDLE_TYP,
  trustBundleSchema,
} from '../../protocol/trust-bundle.ts'
import { verdict, type Check } from '../../verify/check.ts'
import { checkJws } from '../../verify/jws.ts'
import { checkManifest } from '../../verify/manifest.ts'
import { verifyTrustBundle, type AcceptedBundle } from '../../verify/trust-bundle.ts'
import { ReleaseError } from './release-error.ts'

const DOCUMENT = 'trust bundle'

/** A bundle with a valid signature of its root, expired or not. */
export interface SignedBundle {
  readonly accepted: AcceptedBundle
  /** Its content as signed, without the defaults that parsing fills in. */
  readonly content: BundleTemplate
}

const objectSchema = z.record(z.string(), z.json())

/**
 * A bundle template from parsed JSON.
 * @throws ReleaseError when it is not a JSON object
 */
export function readTemplate(json: unknown): BundleTemplate {
  const parsed = objectSchema.safeParse(json)
  if (!parsed.success) throw new ReleaseError('the template is not a JSON object')
  return parsed.data
}

/**
 * Parses a bundle, bare or as published, and verifies its signature.
 * @throws ReleaseError when the root did not sign it
 * @throws MalformedEvidence when it cannot be parsed
 */
export async function openBundle(text: string, root: PublicSigningJwk): Promise<SignedBundle> {
  const jwsText = text.startsWith('{')
    ? readDocument(publishedTrustBundleSchema, parseStrictJson(text, DOCUMENT), DOCUMENT)
        .trust_bundle_jws
    : text
  const jws = parseCompactJws(jwsText, DOCUMENT)
  requireChecks(
    await checkJws(jws, { document: 'trust_bundle', typ: [TRUST_BUNDLE_TYP], key: root }),
  )
  const content = readTemplate(parseStrictJson(jws.payload, DOCUMENT))
  const { version } = readDocument(trustBundleSchema, content, DOCUMENT)
  return { accepted: { root: root.kid, version, sha256: await sha256Hex(jwsText) }, content }
}

export interface IssueOptions {
  readonly root: SigningKey
  /** The bundle that the new one replaces. */
  readonly previous?: SignedBundle | undefined
  /** A manifest that must verify under the new bundle. */
  readonly manifestJws?: string | undefined
}

/**
 * Signs a bundle, and then verifies it as a relying party does, so that an unacceptable one is never published.
 * Returns the document to publish.
 * @throws ReleaseError when a check fails
 * @throws MalformedEvidence when the template does not make a valid bundle
 */
export async function issueBundle(
  parts: BundleParts,
  { root, previous, manifestJws }: IssueOptions,
): Promise<string> {
  const document = composeBundle(parts)
  const { environment } = readDocument(trustBundleSchema, document, DOCUMENT)
  const jws = await signTrustBundle(document, root)
  const now = parts.now.getTime()
  const result = await verifyTrustBundle(jws, root.publicJwk, {
    now,
    environments: [environment],
    lastAccepted: previous?.accepted,
  })
  requireChecks(result.checks)
  if (manifestJws !== undefined && result.bundle !== undefined) {
    const trust = { bundle: result.bundle, rootJwk: root.publicJwk }
    requireChecks((await checkManifest(manifestJws, WORKLOAD, { trust, now })).checks)
  }
  return `${JSON.stringify({ trust_bundle_jws: jws })}\n`
}

function requireChecks(checks: readonly Check[]): void {
  if (verdict(checks).ok) return
  const failed = checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
  throw new ReleaseError(failed.join('; '))
}
