import { z } from 'zod'
import type {
  AdmissionEntry,
  AdmissionFacts,
  SettlementEntry,
  SettlementResult,
} from './ledger-operations.ts'

/** The functions that the database has for the ledger (`postgres-functions/`). */
export type LedgerFunction = 'admit' | 'settle' | 'release'

/** One operation in the form that its function reads. */
export interface LedgerItem {
  /** Empty where the customer is not known. */
  readonly customerId: string
  /** The plans of an admission as JSON; null for other operations. */
  readonly plans: string | null
  /** A JSON object, the function's input. */
  readonly entry: string
}

/** The end of one operation: the function's answer as JSON (null: none), or the engine's failure. */
export type LedgerEnd =
  | { readonly ok: true; readonly answer: string | null }
  | { readonly ok: false; readonly unavailable: boolean; readonly message: string }

/** The end of an operation that was called together with others. `locked`: it was not carried out, and must wait alone. */
export type LedgerAnswer = LedgerEnd | { readonly locked: true }

/** @param plans as JSON */
export function admissionItem(
  { requestId, key, reserveNano, claim, expiresAt, now }: AdmissionEntry,
  plans: string,
): LedgerItem {
  const entry = JSON.stringify({
    request_id: requestId,
    customer_id: key.customerId,
    key_prefix: key.keyPrefix,
    key_hash: key.keyHash,
    amounts: reserveNano,
    claim_name: claim?.name,
    claim_fingerprint: claim?.fingerprint,
    expires_at: expiresAt,
    at_ms: now,
  })
  return { customerId: key.customerId, plans, entry }
}

export function settlementItem({
  requestId,
  customerId,
  keyPrefix,
  claim,
  usage,
  receipt,
  answer,
  alertBelowNano,
}: SettlementEntry): LedgerItem {
  const refs = receipt?.evidenceRefs ?? []
  const entry = JSON.stringify({
    request_id: requestId,
    customer_id: customerId,
    key_prefix: keyPrefix,
    model: usage.model,
    modality: usage.modality,
    provider: usage.provider,
    region: usage.region,
    billing_unit: usage.billingUnit,
    audio_seconds: usage.audioSeconds,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    cost_nano: usage.costNano,
    discount_pct: usage.discountPct,
    usd_eur: usage.usdEur,
    failover: usage.failover ? 1 : 0,
    capped: usage.capped ? 1 : 0,
    at_ms: usage.createdAtMs,
    claim_name: claim?.name,
    claim_fingerprint: claim?.fingerprint,
    claim_until: claim === null ? undefined : usage.createdAtMs + claim.lifetimeMs,
    claim_bytes: claim?.customerBytes,
    answer: claim === null ? undefined : answer,
    receipt_id: receipt?.id,
    jws: receipt?.jws,
    sha256: receipt?.sha256,
    kid: receipt?.kid,
    evidence_refs: receipt === null ? undefined : JSON.stringify(refs),
    receipt_expires_at: receipt?.expiresAtMs,
    evidence: refs.length === 0 ? undefined : refs,
    alert_below_nano: alertBelowNano ?? undefined,
  })
  return { customerId, plans: null, entry }
}

export function releaseItem(requestId: string, customerId: string): LedgerItem {
  return { customerId, plans: null, entry: JSON.stringify({ request_id: requestId }) }
}

const admissionSchema: z.ZodType<AdmissionFacts> = z.object({
  admitted: z.boolean(),
  customerName: z.string(),
  keyName: z.string(),
  plan: z.string(),
  receiptRetentionDays: z.number().nullable(),
  suspended: z.boolean(),
  expiresAt: z.number().nullable(),
  secretEndsAt: z.number().nullable(),
  models: z.string().nullable(),
  minAttestation: z.string().nullable(),
  requestsPerMinute: z.number().nullable(),
  tokensPerMinute: z.number().nullable(),
  concurrentRequests: z.number().nullable(),
  windowStartedAt: z.number(),
  windowRequests: z.number(),
  windowTokens: z.number(),
  isRepeat: z.boolean(),
  overLimit: z.boolean(),
  openRequests: z.number(),
})

const settlementSchema: z.ZodType<SettlementResult> = z.object({
  outcome: z.enum(['settled', 'claim_lost', 'no_account']),
  missingEvidence: z.array(z.string()),
})

/** Reads the facts that `cmr_admit_v2` returns. */
export function readAdmission(answer: string): AdmissionFacts {
  return admissionSchema.parse(JSON.parse(answer))
}

/** Reads the result that `cmr_settle_v3` returns. */
export function readSettlement(answer: string | null): SettlementResult {
  return settlementSchema.parse(answer === null ? null : JSON.parse(answer))
}

/** The argument of a function call, and for each of its answers, in order, the index of the item. */
export interface RoundsOfItems {
  readonly rounds: string
  readonly order: readonly number[]
}

/**
 * Arranges items in rounds: a round has at most one item of each customer, in order, and only items with the same plans.
 * Items of unknown customers count as items of one customer.
 */
export function roundsOf(items: readonly LedgerItem[]): RoundsOfItems {
  const rounds: { readonly plans: string | null; readonly entries: string[]; order: number[] }[] =
    []
  const nextOf = new Map<string, number>()
  for (const [index, { customerId, plans, entry }] of items.entries()) {
    let round = nextOf.get(customerId) ?? 0
    while (rounds[round] !== undefined && rounds[round]?.plans !== plans) round += 1
    const place = (rounds[round] ??= { plans, entries: [], order: [] })
    place.entries.push(entry)
    place.order.push(index)
    nextOf.set(customerId, round + 1)
  }
  const texts = rounds.map(
    ({ plans, entries }) => `{"plans":${plans},"entries":[${entries.join(',')}]}`,
  )
  return { rounds: `[${texts.join(',')}]`, order: rounds.flatMap(({ order }) => order) }
}
