import { CLOCKS_DIFFER_MS } from '../storage/clock-difference.ts'
import type { Database, Row, Statement } from '../storage/database.ts'
import { numberOf, textOf } from '../storage/row.ts'
import { int64, raw, sql } from '../storage/sql.ts'
import { eraseRound } from './erase.ts'
import { overwriteBodies } from './overwrite.ts'
import { lockCustomer } from './settle-sql.ts'

/** Limits of one round. */
export interface SweepLimits {
  readonly reservations: number
  readonly receipts: number
}

/** A round holds its locks for some milliseconds on every engine, and four rounds a second keep up with any load. */
const SWEEP_LIMITS: SweepLimits = { reservations: 500, receipts: 400 }

/** What one round did, and when the next one is due (ms); undefined: nothing is scheduled. */
export interface SweepReport {
  /** Number of expired reservations that were released. */
  readonly released: number
  /** Receipt bodies that were overwritten. */
  readonly expired: number
  /** Overwritten bodies that were cleared. */
  readonly cleared: number
  readonly next: number | undefined
}

/**
 * One bounded round of maintenance on the database of all customers: releases reservations that a crash left open, removes
 * expired receipt bodies together with evidence and heads that no receipt needs, and removes expired answers kept for
 * repeats.
 *
 * A body is removed in two transactions. Rewriting it at its own length makes SQLite overwrite the bytes in the file;
 * clearing alone would only mark them as free. A whole round lies between the two, because a Durable Object may commit
 * everything that one event does as one transaction. Every step is idempotent, and two instances may sweep at once.
 * @param now the time up to which rows are due, ms
 * @param clock the current time, ms, where `now` is another one. Heads do not expire before it, since routers that use a
 *   head do not check whether it is still stored; and rows that lie too far after it show that the clock was set back
 */
export async function sweep(
  db: Database,
  now: number,
  limits: SweepLimits = SWEEP_LIMITS,
  clock = now,
): Promise<SweepReport> {
  const cleared = await clearBodies(db, limits.receipts)
  const expired = await overwriteBodies(db, expiredReceipts(now, limits.receipts))
  await dropEvidence(db, now, limits.receipts)
  await dropHeads(db, Math.min(now, clock), limits.receipts)
  await dropAnswers(db, now, limits.receipts)
  await redateReservations(db, clock, limits.reservations)
  const released = await releaseExpired(db, now, limits.reservations)
  await eraseRound(db, now, clock)
  return { released, expired, cleared, next: await nextDue(db, Math.max(now - clock, 0)) }
}

/** Runs rounds until nothing is due at `now`, or at most `rounds`; returns the sums of what they did. */
export async function sweepAll(
  db: Database,
  now: number,
  { rounds = 10_000, clock = now }: { readonly rounds?: number; readonly clock?: number } = {},
): Promise<SweepReport> {
  const sum = { released: 0, expired: 0, cleared: 0 }
  let next: number | undefined = now
  for (let round = 0; round < rounds && next !== undefined && next <= now; round++) {
    const report = await sweep(db, now, SWEEP_LIMITS, clock)
    sum.released += report.released
    sum.expired += report.expired
    sum.cleared += report.cleared
    next = report.next
  }
  return { ...sum, next }
}

/** Clears overwritten bodies. `body_state` grows from no bytes to one, so SQLite rebuilds the row without the filler. */
async function clearBodies(db: Database, limit: number): Promise<number> {
  const [rows = []] = await db.batch([
    sql`UPDATE receipts SET jws = NULL, body_state = 2
      WHERE body_state = 1 AND (customer_id, receipt_id) IN (
        SELECT customer_id, receipt_id FROM receipts WHERE body_state = 1
        ORDER BY expires_at LIMIT ${limit})
      RETURNING receipt_id`,
  ])
  return rows.length
}

/** SQL condition: the oldest receipts whose bodies have expired, at most `limit`. */
function expiredReceipts(now: number, limit: number): Statement {
  return sql`(customer_id, receipt_id) IN (SELECT customer_id, receipt_id FROM receipts
    WHERE body_state = 0 AND expires_at <= ${int64(now)} ORDER BY expires_at LIMIT ${limit})`
}

async function dropEvidence(db: Database, now: number, limit: number): Promise<void> {
  await db.batch([
    sql`DELETE FROM evidence WHERE (customer_id, sha256) IN (
      SELECT customer_id, sha256 FROM evidence WHERE expires_at <= ${int64(now)}
      ORDER BY expires_at LIMIT ${limit})`,
  ])
}

/**
 * Removes expired heads. A head expires no earlier than each receipt that names it. Heads stay while the body of any expired
 * receipt is not yet overwritten, so that no stored receipt ever names a removed head, whatever the clock does.
 */
async function dropHeads(db: Database, now: number, limit: number): Promise<void> {
  await db.batch([
    // The outer condition repeats the time: when another transaction has just extended a row, PostgreSQL rechecks only that
    // condition.
    sql`DELETE FROM receipt_heads WHERE expires_at <= ${int64(now)} AND sha256 IN (
        SELECT sha256 FROM receipt_heads WHERE expires_at <= ${int64(now)}
        ORDER BY expires_at LIMIT ${limit})
      AND NOT EXISTS (SELECT 1 FROM receipts WHERE body_state = 0 AND expires_at <= ${int64(now)})`,
  ])
}

/**
 * Removes expired answers. The row stays for as long as a former owner of the claim could settle. Answers are encrypted with
 * a key that the storage never had, so they need not be overwritten.
 */
async function dropAnswers(db: Database, now: number, limit: number): Promise<void> {
  await db.batch([
    sql`DELETE FROM idempotent_requests WHERE (customer_id, name) IN (
      SELECT customer_id, name FROM idempotent_requests WHERE sweep_at <= ${int64(now)}
      ORDER BY sweep_at LIMIT ${limit})`,
    sql`UPDATE idempotent_requests SET answer = NULL, bytes = 0 WHERE (customer_id, name) IN (
      SELECT customer_id, name FROM idempotent_requests
      WHERE bytes > 0 AND held_until <= ${int64(now)} ORDER BY held_until LIMIT ${limit})`,
  ])
}

/**
 * Dates reservations from before the clock was set back to the current time and keeps their duration. Otherwise those of
 * dead processes would stay for the length of the step as well. Requests that are still running do not need theirs for
 * longer.
 */
async function redateReservations(db: Database, clock: number, limit: number): Promise<void> {
  const ahead = sql`created_at > ${int64(clock + CLOCKS_DIFFER_MS)}`
  const [owners = []] = await db.batch([
    sql`SELECT DISTINCT customer_id FROM reservations WHERE ${ahead}
      ORDER BY customer_id LIMIT ${limit}`,
  ])
  for (const owner of owners) {
    const customerId = textOf(owner, 'customer_id')
    await db.batch([
      lockCustomer(customerId),
      sql`UPDATE reservations SET created_at = ${int64(clock)},
          expires_at = expires_at - created_at + ${int64(clock)}
        WHERE customer_id = ${customerId} AND ${ahead}`,
    ])
  }
}

/**
 * Releases expired reservations, customer by customer and each under the customer's lock as in settlement, so that locks are
 * always taken in the same order.
 */
async function releaseExpired(db: Database, now: number, limit: number): Promise<number> {
  const [owners = []] = await db.batch([
    sql`SELECT customer_id, COUNT(*) AS due FROM (
        SELECT customer_id FROM reservations WHERE expires_at <= ${int64(now)}
        ORDER BY expires_at LIMIT ${limit}) AS oldest
      GROUP BY customer_id`,
  ])
  let released = 0
  for (const owner of owners) {
    const customerId = textOf(owner, 'customer_id')
    const rows = await db.batch(releaseOf(customerId, now, numberOf(owner, 'due')))
    released += rows.at(-1)?.length ?? 0
  }
  return released
}

function releaseOf(customerId: string, now: number, limit: number): readonly Statement[] {
  const due = sql`SELECT request_id, amount_nano FROM reservations
    WHERE customer_id = ${customerId} AND expires_at <= ${int64(now)}
    ORDER BY expires_at, request_id LIMIT ${limit}`
  return [
    sql`UPDATE customers SET lock_request_id = '' WHERE customer_id = ${customerId}`,
    sql`UPDATE customers SET reserved_nano = reserved_nano -
        CAST((SELECT COALESCE(SUM(amount_nano), 0) FROM (${due}) AS due) AS BIGINT)
      WHERE customer_id = ${customerId}`,
    sql`DELETE FROM reservations WHERE request_id IN (
        SELECT request_id FROM (${due}) AS due)
      RETURNING request_id`,
  ]
}

/**
 * The earliest times at which rows are due; an overwritten body (`body_state` 1) is always due. One statement each, because
 * D1 allows only five terms in a UNION.
 */
const DUE = [
  'SELECT MIN(expires_at) AS due FROM reservations',
  'SELECT MIN(expires_at) AS due FROM receipts WHERE body_state = 0',
  'SELECT MIN(expires_at) AS due FROM receipts WHERE body_state = 1',
  'SELECT MIN(expires_at) AS due FROM evidence',
  'SELECT MIN(sweep_at) AS due FROM idempotent_requests',
  'SELECT MIN(held_until) AS due FROM idempotent_requests WHERE bytes > 0',
  'SELECT MIN(next_at) AS due FROM erasures',
].map(raw)

const HEADS_DUE = raw('SELECT MIN(expires_at) AS due FROM receipt_heads')

/**
 * The time at which the next row is due, ms; undefined where none is.
 * @param lead by how much the time of the sweep is ahead of the clock, which decides about heads, ms
 */
async function nextDue(db: Database, lead: number): Promise<number | undefined> {
  const [heads = [], ...rest] = await db.batch([HEADS_DUE, ...DUE])
  const times = [...timesOf(heads).map((time) => time + lead), ...rest.flatMap(timesOf)]
  return times.length === 0 ? undefined : Math.min(...times)
}

function timesOf(rows: readonly Row[]): readonly number[] {
  return rows.flatMap((row) => (row['due'] === null ? [] : [numberOf(row, 'due')]))
}
