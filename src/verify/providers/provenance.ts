import * as z from 'zod'
import type { BuildIdentity } from '../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

/** What a public build record says, once it is verified. */
export interface BuildRecord {
  /** in-toto: of what kind the statement is, and the statement. */
  readonly predicateType: string
  readonly predicate: unknown
  /** SHA-256 of the built artefact, lowercase hex. */
  readonly subjectSha256: string
  readonly release: Release
}

/** The release that a build record is of; the names are those of receipts. */
export type Release = {
  readonly repository: string
  readonly tag: string
  /** Of the source, as the issuer of the builder's identity knows it. */
  readonly commit: string
  /** RFC 3339. */
  readonly logged_at: string
  /** Position in the public log. */
  readonly log_index: string
}

/**
 * Verifies a Sigstore bundle (JSON text) offline: certificate, log entry, signature, dates, and that this identity
 * signed it. `now` in milliseconds.
 * @throws EvidenceRefused `provenance`, with the check that failed
 */
export type VerifyProvenance = (bundle: string, identity: BuildIdentity, now: number) => BuildRecord

/** Where no verifier was given no build record holds. */
export const noProvenance: VerifyProvenance = () => {
  throw new EvidenceRefused('provenance', ['no_verifier'])
}

/** A build record as it comes with evidence: the bundle, and the digest it is said to be of. */
export const publishedRecordSchema = z.strictObject({
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  bundle: z.string(),
})
export type PublishedRecord = z.output<typeof publishedRecordSchema>

/**
 * The record under an identity, of exactly the artefact that it was published for.
 * @throws EvidenceRefused `provenance`
 */
export function requireRecord(
  published: PublishedRecord | undefined,
  identity: BuildIdentity,
  { verifyProvenance, now }: { readonly verifyProvenance: VerifyProvenance; readonly now: number },
): BuildRecord {
  if (published === undefined) throw new EvidenceRefused('provenance', ['record_missing'])
  const record = verifyProvenance(published.bundle, identity, now)
  if (record.subjectSha256 !== published.digest) {
    throw new EvidenceRefused('provenance', ['record_subject'])
  }
  return record
}
