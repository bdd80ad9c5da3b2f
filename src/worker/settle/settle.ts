import type { Coalescer } from '../batching/coalescer.ts'
import { errorFields } from '../http/error-fields.ts'
import type { Log } from '../http/log.ts'
import type { Link, SignedReceipt } from '../link/link.ts'
import { StorageUnavailable, type Database } from '../storage/database.ts'
import { storedJws } from '../storage/stored-jws.ts'
import { retainEvidence, type Evidence } from './evidence.ts'
import { billedTokens, claimsOf, type Exchange, type ExchangeProof } from './exchange.ts'
import { MAX_RESERVATION_NANO } from './admit.ts'
import type { Alerts } from './alerts.ts'
import { ClaimLost } from './claims.ts'
import {
  commitSettlement,
  NO_RETRY,
  ONE_RETRY,
  untilAnswered,
  untilRestarted,
  type Settlement,
} from './ledger.ts'
import { priceOf } from './price.ts'
import { quarantine } from './quarantine.ts'
import { release } from './release.ts'

export interface SettleDeps {
  /** Coalesces the settlement with those of other exchanges of its provider that end at about the same time. */
  readonly coalesce: Coalescer
  readonly ledger: Database
  readonly link: Link
  readonly evidence: Evidence
  readonly log: Log
  /** Stores the public half of a signing key before a receipt names it. */
  readonly rememberKey: (kid: string) => Promise<void>
  /** Stores the head of receipts that expire at a time (ms) before one of them is stored. */
  readonly rememberHead: (head: SignedReceipt['head'], expiresAtMs: number) => Promise<void>
  /** Digest of the configuration in force when the exchange began. */
  readonly configurationSha256: string
  readonly usdEur: number | undefined
  /** The thresholds to report, where the operator has webhooks. */
  readonly alerts?: Alerts | undefined
  readonly defaultRetentionDays: number
  readonly now: () => number
}

const DAY_MS = 86_400_000

/** The group of settlements that need no signing call: they have no receipt, or one that is signed already. */
const NOT_TO_SIGN = ''

/**
 * Settles a complete exchange: price, signed receipt, and one atomic commit of row, balance, reservation and receipt.
 * Idempotent. Once it resolves, the receipt can be fetched by its id.
 * @throws LinkUnavailable when the receipt could not be signed; nothing is stored then
 * @throws StorageUnavailable when the settlement could not be stored
 */
export function settleWithReceipt(
  exchange: Exchange,
  proof: ExchangeProof,
  id: string,
  deps: SettleDeps,
): Promise<void> {
  const provider = exchange.route.provider.name
  const settle = async () => {
    const now = deps.now()
    const signed = await deps.link.sign({
      claims: claimsOf(exchange, proof, id, now),
      provider,
      configuration_sha256: deps.configurationSha256,
      evidence_sha256: proof.evidenceSha256,
      upstream_model: exchange.route.config.upstream_model,
      ...(proof.providerResponseId === undefined
        ? {}
        : { provider_response_id: proof.providerResponseId }),
    })
    await storeSigned(exchange, { id, signed }, deps, { startedAt: now, signed: 'afterwards' })
  }
  return untilAnswered(() => deps.coalesce(provider, settle), untilRestarted(deps.now))
}

/** A receipt to be stored. */
interface IssuedReceipt {
  /** The receipt's id. */
  readonly id: string
  readonly signed: SignedReceipt
}

/** When a settlement began, and when its receipt was signed. */
interface Signing {
  /** Ms. */
  readonly startedAt: number
  /** Whether the receipt was signed by the call that brought the answer, by a call of its own afterwards, or not at all. */
  readonly signed: 'with_answer' | 'afterwards' | 'not'
}

/**
 * Like `settleWithReceipt`, with a receipt that the daemon has signed already.
 * @throws StorageUnavailable when the settlement could not be stored
 */
export function settleSigned(
  exchange: Exchange,
  receipt: IssuedReceipt,
  deps: SettleDeps,
): Promise<void> {
  const settle = () =>
    storeSigned(exchange, receipt, deps, { startedAt: deps.now(), signed: 'with_answer' })
  return untilAnswered(() => deps.coalesce(NOT_TO_SIGN, settle), untilRestarted(deps.now))
}

async function storeSigned(
  exchange: Exchange,
  { id, signed: { kid, head, tail, sha256 } }: IssuedReceipt,
  deps: SettleDeps,
  signing: Signing,
): Promise<void> {
  const { customerId, receiptRetentionDays } = exchange.admission
  const days = receiptRetentionDays ?? deps.defaultRetentionDays
  const expiresAtMs = signing.startedAt + days * DAY_MS
  await deps.rememberKey(kid)
  await deps.rememberHead(head, expiresAtMs)
  const jws = storedJws(head.sha256, tail)
  const stored = { id, jws, sha256, expiresAtMs, evidenceRefs: head.evidence_refs, kid }
  const { missingEvidence: refs } = await commit(exchange, deps, stored, signing)
  if (refs.length > 0) await retainEvidence(deps, { customerId, refs, expiresAtMs })
}

/**
 * Settles an exchange without a receipt: the client opted out, the answer was cut off, or signing failed.
 * @throws StorageUnavailable when the settlement could not be stored
 */
export function settleWithoutReceipt(
  exchange: Exchange,
  deps: SettleDeps,
  retry = untilRestarted(deps.now),
): Promise<void> {
  const settle = async () => void (await commit(exchange, deps, null))
  return untilAnswered(() => deps.coalesce(NOT_TO_SIGN, settle), retry)
}

/**
 * Settles an exchange whose answer was delivered and that gets no receipt. If settling fails for a reason that a retry does
 * not remove, the settlement is quarantined for the operator. If another request has taken over the claim, this one costs
 * nothing. If the storage does not answer, the caller tries again later.
 * @throws StorageUnavailable when the settlement could be neither stored nor quarantined
 */
export async function settleDelivered(exchange: Exchange, deps: SettleDeps): Promise<void> {
  try {
    await settleWithoutReceipt(exchange, deps, ONE_RETRY)
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error
    if (error instanceof ClaimLost) return release(exchange.requestId, deps)
    await quarantine(deps.ledger, settlementOf(exchange, deps, null), deps.now())
    const { requestId, route } = exchange
    deps.log('settle_quarantined', {
      request_id: requestId,
      route: route.id,
      ...errorFields(error),
    })
    await release(requestId, deps)
  }
}

async function commit(
  exchange: Exchange,
  deps: SettleDeps,
  receipt: Settlement['receipt'],
  { startedAt, signed }: Signing = { startedAt: deps.now(), signed: 'not' },
) {
  const { route, usage } = exchange
  const settlement = settlementOf(exchange, deps, receipt)
  // No retry here: callers retry outside of the group and of the customer's turn, so that neither waits for an unavailable
  // storage.
  const committed = await commitSettlement(deps.ledger, settlement, NO_RETRY)
  deps.log('settled', {
    request_id: exchange.requestId,
    route: route.id,
    modality: exchange.modality,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    receipt: receipt !== null,
    signed,
    cost_nano: Number(settlement.row.cost.nano),
    duration_ms: deps.now() - startedAt,
  })
  return committed
}

function settlementOf(
  exchange: Exchange,
  { usdEur, now, alerts }: Pick<SettleDeps, 'usdEur' | 'now' | 'alerts'>,
  receipt: Settlement['receipt'],
): Settlement {
  const { requestId, admission, route } = exchange
  const { promptTokens, completionTokens } = billedTokens(exchange)
  const cost = priceOf(
    route,
    { tokens: exchange.usage, audioSeconds: exchange.billedSeconds },
    { discountPct: admission.discountPct, usdEur },
  )
  // The bill never exceeds the maximum reservation: where a request allows any number of tokens, this is the only limit on a
  // false count.
  const isTooMuch = cost.nano > MAX_RESERVATION_NANO
  return {
    requestId,
    admission,
    row: {
      model: route.id,
      modality: exchange.modality,
      provider: route.provider.name,
      region: route.region ?? null,
      audioSeconds: exchange.reportedSeconds,
      promptTokens,
      completionTokens,
      cost: isTooMuch ? { ...cost, nano: MAX_RESERVATION_NANO } : cost,
      usageCapped: exchange.usageCapped || isTooMuch,
      failover: exchange.failover,
      createdAtMs: now(),
    },
    receipt,
    answer: exchange.answer ?? null,
    alerts,
  }
}
