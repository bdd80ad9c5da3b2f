import { ApiError } from '../http/errors.ts'
import type { Database, Row } from '../storage/database.ts'
import { numberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { int64, sql } from '../storage/sql.ts'

/** A receipt within its retention. */
export interface LiveReceipt {
  /** The id as stored. */
  readonly id: string
  readonly jws: string
  /** SHA-256 of each piece of evidence it names by digest. */
  readonly evidenceRefs: readonly string[]
}

/**
 * The caller's receipt of an id. An id that never was, one that was opted out and another customer's are the
 * same to this query and to its answer: it looks among the caller's rows only.
 *
 * Past its retention a receipt is gone by the clock, whether or not a sweep has removed its body; a body that
 * was removed stays gone, whatever the clock says.
 * @throws ApiError `missing_field`, `not_found` or `expired`
 */
export async function findReceipt(
  db: Database,
  customerId: string,
  id: string,
  now: number,
): Promise<LiveReceipt> {
  if (id === '') throw new ApiError('missing_field', 'The receipt id is missing.', { param: 'id' })
  // PostgreSQL has no NUL in a text, so an id with one is looked up as one that cannot be.
  const wanted = id.replaceAll('\0', '?')
  const [rows = []] = await db.batch([
    sql`SELECT receipt_id, jws, sha256, evidence_refs,
        CASE WHEN body_state <> 0 OR expires_at <= ${int64(now)} THEN 1 ELSE 0 END AS expired
      FROM receipts WHERE customer_id = ${customerId} AND receipt_id = ${wanted}`,
  ])
  const [row] = rows
  if (!row) throw new ApiError('not_found', 'There is no receipt with this id.')
  const jws = numberOf(row, 'expired') === 1 ? null : optionalTextOf(row, 'jws')
  if (jws === null) throw expired(row)
  return { id: textOf(row, 'receipt_id'), jws, evidenceRefs: evidenceRefsOf(row) }
}

function expired(row: Row): ApiError {
  return new ApiError('expired', 'The receipt is past its retention; only its digest is kept.', {
    members: { status: 'expired', receipt_sha256: textOf(row, 'sha256') },
  })
}

/** Written by the ledger as a JSON array of digests. */
function evidenceRefsOf(row: Row): readonly string[] {
  const refs: unknown = JSON.parse(textOf(row, 'evidence_refs'))
  return Array.isArray(refs) ? refs.filter((ref) => typeof ref === 'string') : []
}
