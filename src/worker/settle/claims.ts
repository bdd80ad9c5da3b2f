import { ApiError } from '../http/errors.ts'
import type { Database, Statement } from '../storage/database.ts'
import type { Claim } from '../storage/ledger-operations.ts'
import { numberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { int64, small, sql, text } from '../storage/sql.ts'

/**
 * Requests with an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header). A claim is taken in the batch that
 * admits the request and completed in the batch that bills it, so after a crash at any point a repeat either finds the
 * bill and its answer, or neither.
 *
 * A claim is held for a short time and renewed while its request runs. Once it lapses a repeat takes it over. The
 * former owner may still be alive: its settlement is then refused, because the row names another request.
 */

/** Seconds after which a client should repeat a request that is still in progress. */
const REPEAT_AFTER_SECONDS = 2

/** The answer to a repeat of a request that is in progress. */
export class InProgress extends ApiError {
  constructor() {
    const message =
      'A request with this Idempotency-Key is being carried out. Send it again to get its answer.'
    super('idempotency_in_progress', message, { retryAfter: REPEAT_AFTER_SECONDS })
  }
}

/** Another request has taken over the claim of this one, which is therefore not billed. */
export class ClaimLost extends InProgress {}

/** How long a claim lasts unless it is renewed, ms. */
export const CLAIM_HELD_MS = 60_000

/** The owner of a claim, as a part of its admission. */
interface Owner {
  readonly requestId: string
  readonly customerId: string
}

/** Whether another request holds the claim, as an SQL fragment. */
export function heldByAnother(claim: Claim, { requestId, customerId }: Owner, now: number) {
  return sql`EXISTS (SELECT 1 FROM idempotent_requests
    WHERE idempotent_requests.customer_id = ${customerId} AND name = ${claim.name}
      AND request_id <> ${requestId} AND held_until > ${int64(now)})`
}

/** Whether the claim names another request, which may be in progress, lapsed or completed, as an SQL fragment. */
export function takenByAnother({ name }: Claim, { requestId, customerId }: Owner): Statement {
  return sql`EXISTS (SELECT 1 FROM idempotent_requests
    WHERE idempotent_requests.customer_id = ${customerId} AND name = ${name}
      AND request_id <> ${requestId})`
}

/** Takes the claim for the request named in `customers.lock_request_id`. */
export function takeClaim(
  claim: Claim,
  { requestId, customerId }: Owner,
  { now, reservedUntil }: { readonly now: number; readonly reservedUntil: number },
): Statement {
  return sql`INSERT INTO idempotent_requests
      (customer_id, name, request_id, fingerprint, held_until, sweep_at)
    SELECT customer_id, ${text(claim.name)}, ${text(requestId)}, ${text(claim.fingerprint)},
      ${int64(now + CLAIM_HELD_MS)}, ${int64(reservedUntil)}
    FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId}
    ON CONFLICT (customer_id, name) DO UPDATE SET
      fenced_until = CASE WHEN idempotent_requests.request_id = excluded.request_id
        THEN idempotent_requests.fenced_until ELSE idempotent_requests.sweep_at END,
      request_id = excluded.request_id, fingerprint = excluded.fingerprint,
      done = 0, bytes = 0, answer = NULL, held_until = excluded.held_until,
      sweep_at = CASE WHEN idempotent_requests.sweep_at > excluded.sweep_at
        THEN idempotent_requests.sweep_at ELSE excluded.sweep_at END`
}

/** The completion of a claim: the encrypted answer, or null where none is kept. */
export interface ClaimEnd extends Owner {
  readonly claim: Claim
  readonly answer: string | null
  /** Ms. */
  readonly now: number
}

/**
 * Completes the claim of the request named in `customers.lock_request_id`, and removes the oldest answers beyond the
 * maximum.
 */
export function completeClaim({
  claim,
  requestId,
  customerId,
  answer,
  now,
}: ClaimEnd): readonly Statement[] {
  const until = int64(now + claim.lifetimeMs)
  const insert = sql`INSERT INTO idempotent_requests
      (customer_id, name, request_id, fingerprint, done, bytes, held_until, sweep_at, answer)
    SELECT customer_id, ${text(claim.name)}, ${text(requestId)}, ${text(claim.fingerprint)},
      ${small(1)}, ${int64(answer?.length ?? 0)}, ${until}, ${until}, ${text(answer)}
    FROM customers WHERE customer_id = ${customerId} AND lock_request_id = ${requestId}
    ON CONFLICT (customer_id, name) DO UPDATE SET done = 1, bytes = excluded.bytes,
      held_until = excluded.held_until, answer = excluded.answer,
      sweep_at = CASE WHEN idempotent_requests.fenced_until > excluded.sweep_at
        THEN idempotent_requests.fenced_until ELSE excluded.sweep_at END
    WHERE idempotent_requests.request_id = excluded.request_id`
  return answer === null ? [insert] : [insert, dropOldest(customerId, claim.customerBytes)]
}

/** Keeps the newest answers of a customer, up to this many bytes in all. */
function dropOldest(customerId: string, customerBytes: number): Statement {
  return sql`UPDATE idempotent_requests SET answer = NULL, bytes = 0
    WHERE customer_id = ${customerId} AND bytes > 0 AND name IN (
      SELECT name FROM (
        SELECT name, SUM(bytes) OVER (ORDER BY held_until DESC, name) AS newer
        FROM idempotent_requests WHERE customer_id = ${customerId} AND bytes > 0) AS kept
      WHERE newer > ${int64(customerBytes)})`
}

/** Reads the request that owns the claim. */
export function readOwner({ name }: Claim, customerId: string): Statement {
  return sql`SELECT request_id FROM idempotent_requests
    WHERE customer_id = ${customerId} AND name = ${name}`
}

/** Completes the claim of a request that is billed later, without an answer to repeat. */
export function closeClaim({
  claim,
  requestId,
  customerId,
  now,
}: Omit<ClaimEnd, 'answer'>): Statement {
  const until = int64(now + claim.lifetimeMs)
  return sql`UPDATE idempotent_requests SET done = 1, held_until = ${until},
      sweep_at = CASE WHEN fenced_until > ${until} THEN fenced_until ELSE ${until} END
    WHERE customer_id = ${customerId} AND name = ${claim.name} AND request_id = ${requestId}`
}

/** Releases the claim of a request that is not billed, so that the next request with the same key is served. */
export function dropClaim(requestId: string): Statement {
  return sql`DELETE FROM idempotent_requests WHERE request_id = ${requestId} AND done = 0`
}

/**
 * Renews the claim of a running request.
 * @returns whether the request still owns it
 * @throws StorageUnavailable when the storage does not answer
 */
export async function renewClaim(
  db: Database,
  { name }: Claim,
  { requestId, customerId }: Owner,
  now: number,
): Promise<boolean> {
  const [rows = []] = await db.batch([
    sql`UPDATE idempotent_requests SET held_until = ${int64(now + CLAIM_HELD_MS)}
      WHERE customer_id = ${customerId} AND name = ${name} AND request_id = ${requestId}
        AND done = 0
      RETURNING request_id`,
  ])
  return rows.length === 1
}

/**
 * The longest time until an open claim lapses, ms, as seen by a worker whose clock is behind that of the claim's owner by
 * `CLAIM_HELD_MS`. A claim that lapses later was taken before the clock was set back.
 */
const LONGEST_HOLD_MS = 2 * CLAIM_HELD_MS

/**
 * Gives a claim from before the clock was set back the hold of a claim that is taken now. An owner that is still alive
 * renews it; without this, the claim of a dead owner would be held until the clock reaches its former time again.
 */
async function shortenHold(
  db: Database,
  { name }: Claim,
  customerId: string,
  now: number,
): Promise<void> {
  await db.batch([
    sql`UPDATE idempotent_requests SET held_until = ${int64(now + CLAIM_HELD_MS)}
      WHERE customer_id = ${customerId} AND name = ${name} AND done = 0
        AND held_until >= ${int64(now + LONGEST_HOLD_MS)}`,
  ])
}

/** An earlier request with the same key. */
export interface EarlierRequest {
  readonly requestId: string
  readonly fingerprint: string
  /** Whether it was served and billed. */
  readonly done: boolean
  /** Encrypted; null: not kept, or not there yet. */
  readonly answer: string | null
  readonly receiptId: string | null
}

/**
 * Finds the request that holds a claim. Shortens a hold from before the clock was set back.
 * @returns undefined where no request holds the claim
 * @throws StorageUnavailable when the storage does not answer
 */
export async function findEarlier(
  db: Database,
  claim: Claim,
  customerId: string,
  now: number,
): Promise<EarlierRequest | undefined> {
  const [rows = []] = await db.batch([
    sql`SELECT request_id, fingerprint, done, answer, held_until,
        (SELECT receipt_id FROM usage WHERE usage.id = idempotent_requests.request_id) AS receipt_id
      FROM idempotent_requests
      WHERE customer_id = ${customerId} AND name = ${claim.name} AND held_until > ${int64(now)}`,
  ])
  const [row] = rows
  if (row === undefined) return undefined
  const done = numberOf(row, 'done') === 1
  if (!done && numberOf(row, 'held_until') >= now + LONGEST_HOLD_MS) {
    await shortenHold(db, claim, customerId, now)
  }
  return {
    requestId: textOf(row, 'request_id'),
    fingerprint: textOf(row, 'fingerprint'),
    done,
    answer: optionalTextOf(row, 'answer'),
    receiptId: optionalTextOf(row, 'receipt_id'),
  }
}

/** How many bytes of answers are kept for all customers together. @throws StorageUnavailable */
export async function keptBytes(directory: Database): Promise<number> {
  const [rows = []] = await directory.batch([
    sql`SELECT COALESCE(SUM(bytes), 0) AS total FROM idempotent_requests WHERE bytes > 0`,
  ])
  return rows[0] ? numberOf(rows[0], 'total') : 0
}
