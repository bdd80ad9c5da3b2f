import { parseCompactJws } from '../../protocol/compact-jws.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { trustBundleSchema } from '../../protocol/trust-bundle.ts'
import type { Release } from './release.ts'

const DOCUMENT = 'trust bundle'

/**
 * When the bundle of the release in force was issued, milliseconds since 1970. The bundle must have been verified
 * before.
 */
export function bundleIssuedAt({ bundleJws }: Pick<Release, 'bundleJws'>): number {
  const { payload } = parseCompactJws(bundleJws, DOCUMENT)
  const bundle = readDocument(trustBundleSchema, parseStrictJson(payload, DOCUMENT), DOCUMENT)
  return Date.parse(bundle.issued_at)
}
