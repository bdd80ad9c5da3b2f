import * as z from 'zod'
import { hex32 } from '../../protocol/hex-schema.ts'
import type { BuildIdentity } from '../../protocol/provider-policy.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

/** The content of a verified public build record. */
export interface BuildRecord {
  /** in-toto: the type of the statement, and the statement. */
  readonly predicateType: string
  readonly predicate: unknown
  /** SHA-256 of the built artefact, lowercase hex. */
  readonly subjectSha256: string
  readonly release: Release
}

/** The release of a build record; the names are those of receipts. */
export type Release = {
  readonly repository: string
  readonly tag: string
  /** The source commit, as the issuer of the builder's identity states it. */
  readonly commit: string
  /** RFC 3339. */
  readonly logged_at: string
  /** Position in the public log. */
  readonly log_index: string
}

/**
 * Verifies a Sigstore bundle (JSON text) offline: certificate, log entry, signature, dates, and that this identity
 * signed it.
 * @param now milliseconds
 * @throws EvidenceRefused `provenance`, with the check that failed
 */
export type VerifyProvenance = (bundle: string, identity: BuildIdentity, now: number) => BuildRecord

/** The default without a verifier: accepts no build record. */
export const noProvenance: VerifyProvenance = () => {
  throw new EvidenceRefused('provenance', ['no_verifier'])
}

/** A build record as published with evidence: the bundle, and the stated digest of its subject. */
export const publishedRecordSchema = z.strictObject({
  digest: hex32,
  bundle: z.string(),
})
export type PublishedRecord = z.output<typeof publishedRecordSchema>

/**
 * Verifies the record: it must be signed by the identity, for exactly the artefact for which it was published.
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
