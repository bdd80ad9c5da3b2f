import { parseCompactJws } from '../../protocol/compact-jws.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { trustBundleSchema } from '../../protocol/trust-bundle.ts'
import type { Release } from './release.ts'

const DOCUMENT = 'trust bundle'

/** When the bundle of a release in force was issued, in milliseconds since 1970; it was verified before. */
export function bundleIssuedAt({ bundleJws }: Pick<Release, 'bundleJws'>): number {
  const { payload } = parseCompactJws(bundleJws, DOCUMENT)
  const bundle = readDocument(trustBundleSchema, parseStrictJson(payload, DOCUMENT), DOCUMENT)
  return Date.parse(bundle.issued_at)
}
