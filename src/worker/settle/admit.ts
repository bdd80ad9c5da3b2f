import { z } from 'zod'
import { STRENGTHS, type Strength } from '../../protocol/constraints.ts'
import type { PlanConfig } from '../../protocol/config.ts'
import { keyExpired } from '../auth/authenticate.ts'
import { isExpired } from '../auth/api-key.ts'
import { ApiError } from '../http/errors.ts'
import type { Database, Row } from '../storage/database.ts'
import { flagOf, numberOf, optionalNumberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { admissionBatch, WINDOW_MS, type AdmissionRequest } from './admit-sql.ts'
import { InProgress, type Claim } from './claims.ts'
import { termsOfPlan } from './plan-terms.ts'

/** Time after the request's maximum duration before the sweep may release its reservation, ms. */
export const RESERVATION_SLACK_MS = 60_000

/** A successful admission, with the customer's terms at that moment. */
export interface Admission {
  readonly customerId: string
  readonly keyPrefix: string
  readonly customerName: string
  readonly keyName: string
  readonly plan: string
  readonly discountPct: number
  /** Null: the service's default. */
  readonly receiptRetentionDays: number | null
  /** Selectors of the models that the key may use; null: all. */
  readonly models: readonly string[] | null
  /** What the key requires of every provider; null: nothing. */
  readonly minAttestation: Strength | null
  /** Held until the request is settled or released. */
  readonly claim?: Claim | undefined
  /** `x-ratelimit-*`; empty where the plan limits no requests. */
  readonly rateLimitHeaders: Readonly<Record<string, string>>
}

/**
 * Admits a request in one storage call: checks the key and the plan's limits, and reserves the maximum cost. A refused
 * request stores nothing and does not count against a limit.
 * @throws ApiError `unauthorized`, `key_expired`, `customer_suspended`, `idempotency_in_progress`, `rate_limit_exceeded`,
 *   `insufficient_quota` or, for prepaid customers, `insufficient_balance`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function admit(db: Database, request: AdmissionRequest): Promise<Admission> {
  const rows = await db.batch(admissionBatch(request))
  const facts = rows.at(-1)?.[0]
  if (!facts) throw new ApiError('unauthorized', 'The API key is not valid.')
  const plan = textOf(facts, 'plan')
  const terms = termsOfPlan(request.plans, plan)
  const limits = limitsOf(facts, terms)
  const window = readWindow(facts, limits, request.now)
  if (!flagOf(facts, 'admitted')) throw refusal(facts, limits, window, request.now)
  return {
    customerId: request.key.customerId,
    keyPrefix: request.key.keyPrefix,
    customerName: textOf(facts, 'customer_name'),
    keyName: textOf(facts, 'key_name'),
    plan,
    discountPct: terms.discount_pct,
    receiptRetentionDays: optionalNumberOf(facts, 'receipt_retention_days'),
    models: readModels(optionalTextOf(facts, 'models')),
    minAttestation: z.enum(STRENGTHS).nullable().parse(facts['min_attestation']),
    claim: request.claim,
    rateLimitHeaders: window.headers,
  }
}

/** Limits of a key: for each, the lower of the plan's and the key's own. */
interface KeyLimits {
  readonly requestsPerMinute: number | undefined
  readonly tokensPerMinute: number | undefined
  readonly concurrentRequests: number | undefined
}

function limitsOf(facts: Row, terms: PlanConfig): KeyLimits {
  const own = (column: string) => optionalNumberOf(facts, column) ?? undefined
  return {
    requestsPerMinute: lower(terms.requests_per_minute, own('requests_per_minute')),
    tokensPerMinute: own('tokens_per_minute'),
    concurrentRequests: lower(terms.concurrent_requests, own('concurrent_requests')),
  }
}

function lower(left: number | undefined, right: number | undefined): number | undefined {
  if (left === undefined || right === undefined) return left ?? right
  return Math.min(left, right)
}

const modelsSchema = z.array(z.string())

/** The selectors of a key from their stored form. */
export function readModels(text: string | null): readonly string[] | null {
  return text === null ? null : modelsSchema.parse(JSON.parse(text))
}

interface RequestWindow {
  readonly full: boolean
  readonly tokensUsed: number
  readonly resetSeconds: number
  readonly headers: Readonly<Record<string, string>>
}

/** The state of a key's rate-limit window, for the `x-ratelimit-*` headers that OpenAI's clients read. */
function readWindow(facts: Row, limits: KeyLimits, now: number): RequestWindow {
  const startedAt = numberOf(facts, 'window_started_at')
  const over = Math.abs(now - startedAt) >= WINDOW_MS
  const tokensUsed = over ? 0 : numberOf(facts, 'window_tokens')
  const resetSeconds = over ? 0 : Math.ceil((startedAt + WINDOW_MS - now) / 1000)
  const limit = limits.requestsPerMinute
  if (limit === undefined) return { full: false, tokensUsed, resetSeconds, headers: {} }
  const used = over ? 0 : numberOf(facts, 'window_requests')
  const headers = {
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(Math.max(0, limit - used)),
    'x-ratelimit-reset-requests': `${resetSeconds}s`,
  }
  return { full: used >= limit, tokensUsed, resetSeconds, headers }
}

/** Why a request with a valid key was not admitted: the first applicable reason. */
function refusal(facts: Row, limits: KeyLimits, window: RequestWindow, now: number): ApiError {
  const { headers, resetSeconds: retryAfter } = window
  const ends = [optionalNumberOf(facts, 'expires_at'), optionalNumberOf(facts, 'ends_at')]
  if (ends.some((end) => isExpired(end, now))) return keyExpired()
  if (facts['suspended_at'] !== null) {
    return new ApiError('customer_suspended', 'The operator has suspended this account.')
  }
  if (flagOf(facts, 'is_repeat')) return new InProgress()
  const { requestsPerMinute, tokensPerMinute, concurrentRequests: concurrent } = limits
  const limited = (message: string, seconds: number) =>
    new ApiError('rate_limit_exceeded', message, { headers, retryAfter: seconds })
  if (window.full) {
    return limited(`This key may send ${requestsPerMinute} requests per minute.`, retryAfter)
  }
  if (tokensPerMinute !== undefined && window.tokensUsed >= tokensPerMinute) {
    return limited(`This key may use ${tokensPerMinute} tokens per minute.`, retryAfter)
  }
  if (concurrent !== undefined && numberOf(facts, 'open_requests') >= concurrent) {
    return limited(`This key may have ${concurrent} requests open at the same time.`, 1)
  }
  if (flagOf(facts, 'over_limit')) {
    const message =
      "What is left of this key's limit does not cover the most that this request may cost."
    return new ApiError('insufficient_quota', message, { headers })
  }
  return new ApiError(
    'insufficient_balance',
    'The balance does not cover the most that this request may cost.',
    { headers },
  )
}
