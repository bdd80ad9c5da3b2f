import type { WebhookEventType } from '../../protocol/webhook-config.ts'
import { formatNano } from '../../protocol/money.ts'
import { CLOCKS_DIFFER_MS } from '../storage/clock-difference.ts'
import type { Database, Row, Statement } from '../storage/database.ts'
import { inGroups } from '../storage/in-groups.ts'
import { bigintOf, numberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { int64, list, sql, text } from '../storage/sql.ts'

/**
 * The outbox: events, and the state of their delivery to each endpoint. An event is stored before anything is sent, and
 * its delivery is complete only when the endpoint has confirmed it: each is delivered at least once.
 */

/** Pauses before the next attempt, ms; after the last one a delivery has failed. About three days in total. */
export const BACK_OFF_MS = [
  5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 72_000_000, 86_400_000,
]

/** How long a delivery is reserved for the instance that attempts it, ms. */
const ATTEMPT_LEASE_MS = 60_000
const MAX_QUEUED = 100
/**
 * Maximum number of attempts for each endpoint in a round, so that the backlog of an unreachable endpoint delays no other.
 */
const MAX_ATTEMPTED = 16

/** How long events and their deliveries are kept, ms. */
const KEPT_MS = 30 * 86_400_000

export interface Endpoint {
  readonly name: string
  readonly events: readonly WebhookEventType[]
}

/** A delivery that is due, with the exact body of its message. */
export interface DueDelivery {
  readonly eventId: string
  readonly endpoint: string
  readonly attempts: number
  readonly body: string
}

/** The outcome of an attempt. */
export interface AttemptResult {
  readonly delivered: boolean
  /** A status, or `unreachable`, `timeout`, `redirected`, `not_configured`. */
  readonly word: string
}

/** Creates deliveries for new events, oldest first. */
export async function queueNew(
  db: Database,
  endpoints: readonly Endpoint[],
  now: number,
): Promise<number> {
  const [rows = []] = await db.batch([
    sql`SELECT id, type FROM webhook_events WHERE queued = 0
      ORDER BY created_at, id LIMIT ${MAX_QUEUED}`,
  ])
  for (const row of rows) {
    const [id, type] = [textOf(row, 'id'), textOf(row, 'type')]
    const takers = endpoints.filter(({ events }) => events.some((event) => event === type))
    await db.batch([
      ...takers.map(
        ({ name }) => sql`INSERT INTO webhook_deliveries
            (event_id, endpoint, state, next_at, updated_at)
          VALUES (${id}, ${name}, 'pending', ${int64(now)}, ${int64(now)})
          ON CONFLICT (event_id, endpoint) DO NOTHING`,
      ),
      sql`UPDATE webhook_events SET queued = 1 WHERE id = ${id}`,
    ])
  }
  return rows.length
}

/** Maximum number of ids in a statement: D1 and Durable Objects allow at most 100 parameters. */
const IDS_OF_A_STATEMENT = 90

/**
 * Restarts the pause of deliveries whose last change lies in the future because the clock was set back: otherwise they would
 * wait until the clock catches up.
 */
function restartPauses(now: number): Statement {
  return sql`UPDATE webhook_deliveries
    SET next_at = next_at - updated_at + ${int64(now)}, updated_at = ${int64(now)}
    WHERE state = 'pending' AND updated_at > ${int64(now + CLOCKS_DIFFER_MS)}`
}

/** Reserves the deliveries that are due, so that no other instance attempts them meanwhile. */
export async function takeDue(db: Database, now: number): Promise<readonly DueDelivery[]> {
  const [, rows = []] = await db.batch([
    restartPauses(now),
    sql`UPDATE webhook_deliveries SET next_at = ${int64(now + ATTEMPT_LEASE_MS)}, updated_at = ${int64(now)}
      WHERE state = 'pending' AND next_at <= ${int64(now)} AND (event_id, endpoint) IN (
        SELECT event_id, endpoint FROM (
          SELECT event_id, endpoint,
            ROW_NUMBER() OVER (PARTITION BY endpoint ORDER BY next_at, event_id) AS place
          FROM webhook_deliveries WHERE state = 'pending' AND next_at <= ${int64(now)}) AS due
        WHERE place <= ${MAX_ATTEMPTED})
      RETURNING event_id, endpoint, attempts`,
  ])
  if (rows.length === 0) return []
  const ids = [...new Set(rows.map((row) => textOf(row, 'event_id')))]
  const events = await db.batch(
    inGroups(ids, IDS_OF_A_STATEMENT).map(
      (some) => sql`SELECT id, type, customer_id, subject, CAST(amount_nano AS TEXT) AS amount_nano,
          CAST(limit_nano AS TEXT) AS limit_nano, created_at
        FROM webhook_events WHERE id IN ${list(some)}`,
    ),
  )
  const bodies = new Map(events.flat().map((row) => [textOf(row, 'id'), messageOf(row)]))
  await dropWithoutEvent(
    db,
    ids.filter((id) => !bodies.has(id)),
  )
  return rows.flatMap((row) => {
    const eventId = textOf(row, 'event_id')
    const body = bodies.get(eventId)
    const rest = { endpoint: textOf(row, 'endpoint'), attempts: numberOf(row, 'attempts') }
    return body === undefined ? [] : [{ eventId, body, ...rest }]
  })
}

/** Deletes deliveries whose event was deleted with its customer while they were created: they would remain due for ever. */
async function dropWithoutEvent(db: Database, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.batch(
    inGroups(ids, IDS_OF_A_STATEMENT).map(
      (some) => sql`DELETE FROM webhook_deliveries WHERE event_id IN ${list(some)}`,
    ),
  )
}

/** Stores the outcome of an attempt. */
export async function recordAttempt(
  db: Database,
  { eventId, endpoint, attempts }: DueDelivery,
  { delivered, word }: AttemptResult,
  now: number,
): Promise<void> {
  const wait = BACK_OFF_MS[attempts]
  const failed = wait === undefined ? 'failed' : 'pending'
  await db.batch([
    sql`UPDATE webhook_deliveries SET state = ${delivered ? 'delivered' : failed},
        attempts = attempts + 1, next_at = ${int64(now + (wait ?? 0))}, last_result = ${word},
        updated_at = ${int64(now)}
      WHERE event_id = ${eventId} AND endpoint = ${endpoint} AND state = 'pending'`,
  ])
}

/** Deletes events and deliveries older than a month. */
export async function dropOld(db: Database, now: number): Promise<void> {
  const before = int64(now - KEPT_MS)
  await db.batch([
    sql`DELETE FROM webhook_deliveries WHERE event_id IN (
      SELECT id FROM webhook_events WHERE created_at < ${before})`,
    sql`DELETE FROM webhook_events WHERE created_at < ${before}`,
    sql`DELETE FROM webhook_states WHERE changed_at < ${before}`,
  ])
}

/** The members of an event's `data`, by event type. */
const DATA: Readonly<Record<WebhookEventType, (row: Row) => Readonly<Record<string, unknown>>>> = {
  'balance.low': (row) => ({
    customer_id: optionalTextOf(row, 'customer_id'),
    balance_eur: euros(row, 'amount_nano'),
    threshold_eur: euros(row, 'limit_nano'),
  }),
  'key.limit_near': keyData,
  'key.limit_reached': keyData,
  'provider.proof_lost': (row) => ({ provider: textOf(row, 'subject') }),
  'provider.proof_regained': (row) => ({ provider: textOf(row, 'subject') }),
  'route.resting': (row) => ({ route: textOf(row, 'subject') }),
  'bundle.expiring': (row) => ({ expires_at: textOf(row, 'subject') }),
  'ledger.failing': (row) => ({ fault: textOf(row, 'subject') }),
  'signing.failing': (row) => ({ fault: textOf(row, 'subject') }),
}

function keyData(row: Row): Readonly<Record<string, unknown>> {
  return {
    customer_id: optionalTextOf(row, 'customer_id'),
    key_prefix: textOf(row, 'subject'),
    spent_eur: euros(row, 'amount_nano'),
    limit_eur: euros(row, 'limit_nano'),
  }
}

function euros(row: Row, column: string): string {
  return formatNano(bigintOf(row, column))
}

/**
 * The body of an event's message: `type`, `timestamp`, `data` (Standard Webhooks). It holds ids and amounts, never
 * names.
 */
export function messageOf(row: Row): string {
  const type = textOf(row, 'type')
  const read = new Map(Object.entries(DATA)).get(type)
  const timestamp = new Date(numberOf(row, 'created_at')).toISOString()
  return JSON.stringify({ type, timestamp, data: read?.(row) ?? {} })
}

/** A page of deliveries, newest event first. */
export async function listDeliveries(
  db: Database,
  { limit, state }: { readonly limit: number; readonly state: string | undefined },
): Promise<readonly object[]> {
  const [rows = []] = await db.batch([
    sql`SELECT event_id, endpoint, state, attempts, next_at, last_result, updated_at, type, created_at
      FROM webhook_deliveries JOIN webhook_events ON webhook_events.id = event_id
      WHERE ${text(state ?? null)} IS NULL OR state = ${text(state ?? null)}
      ORDER BY created_at DESC, event_id, endpoint LIMIT ${limit}`,
  ])
  return rows.map((row) => {
    const pending = textOf(row, 'state') === 'pending'
    return {
      id: textOf(row, 'event_id'),
      type: textOf(row, 'type'),
      endpoint: textOf(row, 'endpoint'),
      state: textOf(row, 'state'),
      attempts: numberOf(row, 'attempts'),
      last_result: optionalTextOf(row, 'last_result'),
      created_at: at(row, 'created_at'),
      updated_at: at(row, 'updated_at'),
      next_attempt_at: pending ? at(row, 'next_at') : null,
    }
  })
}

function at(row: Row, column: string): string {
  return new Date(numberOf(row, column)).toISOString()
}
