import { ApiError } from '../http/errors.ts'
import type { Row, Statement } from '../storage/database.ts'
import { numberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import { HEAD_NAME_CHARACTERS, wholeJws } from '../storage/stored-jws.ts'

/** A receipt within its retention. */
export interface LiveReceipt {
  /** The id as stored. */
  readonly id: string
  /** The compact JWS as it was signed. */
  readonly jws: string
  /** SHA-256 of each piece of evidence it names by digest. */
  readonly evidenceRefs: readonly string[]
}

/** The head that the stored receipt refers to, as an SQL expression. */
const HEAD = raw(`(SELECT receipt_heads.head FROM receipt_heads
  WHERE receipt_heads.sha256 = SUBSTR(receipts.jws, 1, ${HEAD_NAME_CHARACTERS}))`)

/** Finds the caller's receipt with an id; `now` in ms. */
export function receiptQuery(customerId: string, id: string, now: number): Statement {
  // PostgreSQL text cannot contain NUL, so an id with NUL is replaced by one that cannot exist.
  const wanted = id.replaceAll('\0', '?')
  return sql`SELECT receipt_id, jws, ${HEAD} AS head, sha256, evidence_refs,
      CASE WHEN body_state <> 0 OR expires_at <= ${int64(now)} THEN 1 ELSE 0 END AS expired
    FROM receipts WHERE customer_id = ${customerId} AND receipt_id = ${wanted}`
}

/**
 * Reads the receipt that `receiptQuery` found. An unknown id, a request without a receipt and another customer's receipt
 * give the same error: the query searches only the caller's rows.
 *
 * Whether a receipt has expired is decided by the clock, even if the sweep has not removed its body yet; a removed body
 * stays gone even if the clock is set back.
 * @throws ApiError `not_found` or `expired`
 */
export function receiptOf(row: Row | undefined): LiveReceipt {
  if (!row) throw new ApiError('not_found', 'There is no receipt with this id.')
  const stored = numberOf(row, 'expired') === 1 ? null : optionalTextOf(row, 'jws')
  if (stored === null) throw expired(row)
  const jws = wholeJws(stored, optionalTextOf(row, 'head'))
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
