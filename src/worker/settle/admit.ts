import { z } from 'zod'
import { STRENGTHS, type Strength } from '../../protocol/constraints.ts'
import type { PlanConfig, RouterConfig } from '../../protocol/config.ts'
import type { PresentedKey } from '../auth/api-key.ts'
import { keyExpired } from '../auth/authenticate.ts'
import { isExpired } from '../auth/api-key.ts'
import { ApiError } from '../http/errors.ts'
import type { Database } from '../storage/database.ts'
import type { AdmissionEntry, AdmissionFacts, Claim } from '../storage/ledger-operations.ts'
import { WINDOW_MS } from './admit-sql.ts'
import { InProgress } from './claims.ts'
import { amountsByDiscount, termsOfPlan } from './plan-terms.ts'
import { ledgerOf } from './sql-ledger.ts'

/** Time after the request's maximum duration before the sweep may release its reservation, ms. */
export const RESERVATION_SLACK_MS = 60_000

/** The input of `admit`. */
export interface AdmissionRequest {
  readonly requestId: string
  /** The presented key. Its form and MAC have been checked; whether it exists has not. */
  readonly key: PresentedKey
  readonly plans: RouterConfig['plans']
  /** The maximum cost of the request in nano-EUR after a discount in whole percent. */
  readonly reserveNano: (discountPct: number) => bigint
  /** The claim of the request's `Idempotency-Key`, where it has one. */
  readonly claim?: Claim | undefined
  /** When the reservation expires, Unix time in ms. */
  readonly expiresAt: number
  /** Ms. */
  readonly now: number
}

/**
 * Maximum reservation of one request, and so its maximum bill: a million euros. It keeps an extreme `max_tokens` from overflowing the
 * sum of a postpaid customer's reservations; a prepaid one is refused long before.
 */
export const MAX_RESERVATION_NANO = 1_000_000_000_000_000n

/** A key's `min_attestation` as it is stored. */
const minAttestationSchema = z.enum(STRENGTHS)

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
 *   `insufficient_quota` or, for prepaid customers, `insufficient_balance`: both as `CostNotCovered`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function admit(db: Database, request: AdmissionRequest): Promise<Admission> {
  const facts = await ledgerOf(db).admit(entryOf(request))
  if (!facts) throw new ApiError('unauthorized', 'The API key is not valid.')
  const { plan } = facts
  const terms = termsOfPlan(request.plans, plan)
  const limits = limitsOf(facts, terms)
  const window = readWindow(facts, limits, request.now)
  if (!facts.admitted) throw refusal(facts, limits, window, request.now)
  return {
    customerId: request.key.customerId,
    keyPrefix: request.key.keyPrefix,
    customerName: facts.customerName,
    keyName: facts.keyName,
    plan,
    discountPct: terms.discount_pct,
    receiptRetentionDays: facts.receiptRetentionDays,
    models: readModels(facts.models),
    minAttestation: readMinAttestation(facts.minAttestation),
    claim: request.claim,
    rateLimitHeaders: window.headers,
  }
}

function entryOf(request: AdmissionRequest): AdmissionEntry {
  const { requestId, plans, claim = null, expiresAt, now } = request
  const { customerId, keyPrefix, keyHash } = request.key
  const reserveNano = amountsByDiscount(plans, (discountPct) =>
    atMost(request.reserveNano(discountPct)),
  )
  const key = { customerId, keyPrefix, keyHash }
  return { requestId, key, plans, reserveNano, claim, expiresAt, now }
}

function atMost(amount: bigint): bigint {
  return amount > MAX_RESERVATION_NANO ? MAX_RESERVATION_NANO : amount
}

/** Limits of a key: for each, the lower of the plan's and the key's own. */
interface KeyLimits {
  readonly requestsPerMinute: number | undefined
  readonly tokensPerMinute: number | undefined
  readonly concurrentRequests: number | undefined
}

function limitsOf(facts: AdmissionFacts, terms: PlanConfig): KeyLimits {
  return {
    requestsPerMinute: lower(terms.requests_per_minute, facts.requestsPerMinute ?? undefined),
    tokensPerMinute: facts.tokensPerMinute ?? undefined,
    concurrentRequests: lower(terms.concurrent_requests, facts.concurrentRequests ?? undefined),
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

function readMinAttestation(text: string | null): Strength | null {
  return text === null ? null : minAttestationSchema.parse(text)
}

interface RequestWindow {
  readonly full: boolean
  readonly tokensUsed: number
  /** When it ends, ms. */
  readonly endsAt: number
  readonly headers: Readonly<Record<string, string>>
}

const RESET_HEADER = 'x-ratelimit-reset-requests'

/** A key has reached a limit per minute. Until the minute ends, its requests get the same answer. */
export class MinuteUsedUp extends ApiError {
  readonly endsAt: number
  readonly #headers: RequestWindow['headers']

  constructor(
    message: string,
    { endsAt, headers }: Pick<RequestWindow, 'endsAt' | 'headers'>,
    now: number,
  ) {
    const left = secondsUntil(endsAt, now)
    const current = RESET_HEADER in headers ? { ...headers, [RESET_HEADER]: `${left}s` } : headers
    super('rate_limit_exceeded', message, { headers: current, retryAfter: left })
    this.endsAt = endsAt
    this.#headers = headers
  }

  /** The answer to a request at a later time. */
  again(now: number): MinuteUsedUp {
    return new MinuteUsedUp(this.message, { endsAt: this.endsAt, headers: this.#headers }, now)
  }
}

function secondsUntil(at: number, now: number): number {
  return Math.max(0, Math.ceil((at - now) / 1000))
}

/** The state of a key's rate-limit window, for the `x-ratelimit-*` headers that OpenAI's clients read. */
function readWindow(facts: AdmissionFacts, limits: KeyLimits, now: number): RequestWindow {
  const startedAt = facts.windowStartedAt
  const over = Math.abs(now - startedAt) >= WINDOW_MS
  const tokensUsed = over ? 0 : facts.windowTokens
  const endsAt = over ? now : startedAt + WINDOW_MS
  const limit = limits.requestsPerMinute
  if (limit === undefined) return { full: false, tokensUsed, endsAt, headers: {} }
  const used = over ? 0 : facts.windowRequests
  const headers = {
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(Math.max(0, limit - used)),
    [RESET_HEADER]: `${secondsUntil(endsAt, now)}s`,
  }
  return { full: used >= limit, tokensUsed, endsAt, headers }
}

/** Why a request with a valid key was not admitted: the first applicable reason. */
function refusal(
  facts: AdmissionFacts,
  limits: KeyLimits,
  window: RequestWindow,
  now: number,
): ApiError {
  const { headers } = window
  const ends = [facts.expiresAt, facts.secretEndsAt]
  if (ends.some((end) => isExpired(end, now))) return keyExpired()
  if (facts.suspended) {
    return new ApiError('customer_suspended', 'The operator has suspended this account.')
  }
  if (facts.isRepeat) return new InProgress()
  const { requestsPerMinute, tokensPerMinute, concurrentRequests: concurrent } = limits
  const usedUp = (message: string) => new MinuteUsedUp(message, window, now)
  if (window.full) return usedUp(`This key may send ${requestsPerMinute} requests per minute.`)
  if (tokensPerMinute !== undefined && window.tokensUsed >= tokensPerMinute) {
    return usedUp(`This key may use ${tokensPerMinute} tokens per minute.`)
  }
  if (concurrent !== undefined && facts.openRequests >= concurrent) {
    const message = `This key may have ${concurrent} requests open at the same time.`
    return new ApiError('rate_limit_exceeded', message, { headers, retryAfter: 1 })
  }
  return new CostNotCovered(facts, headers)
}

const OVER_LIMIT = {
  code: 'insufficient_quota',
  message: "What is left of this key's limit does not cover the most that this request may cost.",
} as const

const NO_BALANCE = {
  code: 'insufficient_balance',
  message: 'The balance does not cover the most that this request may cost.',
} as const

/**
 * The remaining limit of the key, or the remaining balance, is less than the request may cost. Carries the models and
 * attestation that the key allows, so that the caller can try again with only the routes allowed to it.
 */
export class CostNotCovered extends ApiError {
  readonly models: Admission['models']
  readonly minAttestation: Admission['minAttestation']

  constructor(facts: AdmissionFacts, headers: RequestWindow['headers']) {
    const { code, message } = facts.overLimit ? OVER_LIMIT : NO_BALANCE
    super(code, message, { headers })
    this.models = readModels(facts.models)
    this.minAttestation = readMinAttestation(facts.minAttestation)
  }
}
