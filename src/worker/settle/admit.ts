import type { PlanConfig, RouterConfig } from '../../protocol/config.ts'
import type { PresentedKey } from '../auth/authenticate.ts'
import { ApiError } from '../http/errors.ts'
import type { Database, Row } from '../storage/database.ts'
import { flagOf, numberOf, optionalNumberOf, textOf } from '../storage/row.ts'
import { admissionBatch, WINDOW_MS } from './admit-sql.ts'
import { termsOfPlan } from './plan-terms.ts'

/** A reservation outlives the request's longest run by this much before a sweep may give it back. */
export const RESERVATION_SLACK_MS = 60_000

/** What a request asks before any work is done for it. */
export interface AdmissionRequest {
  readonly requestId: string
  /** The key as presented: its form and MAC are checked, nothing else. */
  readonly key: PresentedKey
  readonly plans: RouterConfig['plans']
  /** The worst case of the request in nano-EUR under a discount in whole percent. */
  readonly reserveNano: (discountPct: number) => bigint
  /** When the reservation lapses, ms. */
  readonly expiresAt: number
  /** Ms. */
  readonly now: number
}

/** Leave to work, and the customer's terms at this moment. */
export interface Admission {
  readonly customerId: string
  readonly keyPrefix: string
  readonly keyName: string
  readonly plan: string
  readonly discountPct: number
  /** Null: the service's default. */
  readonly receiptRetentionDays: number | null
  /** `x-ratelimit-*`; empty where the plan limits no requests. */
  readonly rateLimitHeaders: Readonly<Record<string, string>>
}

/**
 * Admits a request in one storage call: key, plan limits, and a reservation of its worst case. A refused
 * request leaves nothing behind and does not count against a limit.
 * @throws ApiError `unauthorized`, `rate_limit_exceeded` or, for prepaid customers, `insufficient_balance`
 * @throws StorageUnavailable
 */
export async function admit(db: Database, ask: AdmissionRequest): Promise<Admission> {
  const rows = await db.batch(admissionBatch(ask))
  const facts = rows.at(-1)?.[0]
  if (!facts) throw new ApiError('unauthorized', 'The API key is not valid.')
  const plan = textOf(facts, 'plan')
  const terms = termsOfPlan(ask.plans, plan)
  const window = readWindow(facts, terms, ask.now)
  if (!flagOf(facts, 'admitted')) throw refusal(facts, terms, window)
  return {
    customerId: ask.key.customerId,
    keyPrefix: ask.key.keyPrefix,
    keyName: textOf(facts, 'key_name'),
    plan,
    discountPct: terms.discount_pct,
    receiptRetentionDays: optionalNumberOf(facts, 'receipt_retention_days'),
    rateLimitHeaders: window.headers,
  }
}

interface RequestWindow {
  readonly full: boolean
  readonly resetSeconds: number
  readonly headers: Readonly<Record<string, string>>
}

/** The state of a key's window, told in the headers that clients of the common format know. */
function readWindow(facts: Row, terms: PlanConfig, now: number): RequestWindow {
  const limit = terms.requests_per_minute
  if (limit === undefined) return { full: false, resetSeconds: 0, headers: {} }
  const startedAt = numberOf(facts, 'window_started_at')
  const over = Math.abs(now - startedAt) >= WINDOW_MS
  const used = over ? 0 : numberOf(facts, 'window_requests')
  const resetSeconds = over ? 0 : Math.ceil((startedAt + WINDOW_MS - now) / 1000)
  const headers = {
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(Math.max(0, limit - used)),
    'x-ratelimit-reset-requests': `${resetSeconds}s`,
  }
  return { full: used >= limit, resetSeconds, headers }
}

/** Why a request with a good key was not admitted: the first of its reasons. */
function refusal(facts: Row, terms: PlanConfig, window: RequestWindow): ApiError {
  const { headers } = window
  if (window.full) {
    const message = `This key may send ${terms.requests_per_minute} requests per minute.`
    return new ApiError('rate_limit_exceeded', message, {
      headers,
      retryAfter: window.resetSeconds,
    })
  }
  const concurrent = terms.concurrent_requests
  if (concurrent !== undefined && numberOf(facts, 'open_requests') >= concurrent) {
    const message = `This key may have ${concurrent} requests open at the same time.`
    return new ApiError('rate_limit_exceeded', message, { headers, retryAfter: 1 })
  }
  return new ApiError(
    'insufficient_balance',
    'The balance does not cover the most that this request may cost.',
    { headers },
  )
}
