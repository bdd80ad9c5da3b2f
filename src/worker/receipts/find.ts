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
 * The caller's receipt with an id. An unknown id, one without a receipt and another customer's cannot be
 * distinguished: the query only searches the caller's rows.
 *
 * Whether a receipt has expired is decided by the clock, even if the sweep has not removed its body yet; a removed
 * body stays gone even if the clock is set back.
 * @throws ApiError `missing_field`, `not_found` or `expired`
 */
export async function findReceipt(
  db: Database,
  customerId: string,
  id: string,
  now: number,
): Promise<LiveReceipt> {
  if (id === '') throw new ApiError('missing_field', 'The receipt id is missing.', { param: 'id' })
  // PostgreSQL text cannot contain NUL, so an id with NUL is replaced by one that cannot exist.
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

/** The digests that the ledger stored as a JSON array. */
function evidenceRefsOf(row: Row): readonly string[] {
  const refs: unknown = JSON.parse(textOf(row, 'evidence_refs'))
  return Array.isArray(refs) ? refs.filter((ref) => typeof ref === 'string') : []
}
