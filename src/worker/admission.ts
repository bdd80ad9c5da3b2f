import { withMinimum, type Constraints } from '../protocol/constraints.ts'
import type { ProviderProof } from '../protocol/provider-proof.ts'
import type { PresentedKey } from './auth/api-key.ts'
import type { Context } from './context.ts'
import { ApiError } from './http/errors.ts'
import type { Route } from './provider/route.ts'
import { acceptedAttempts, needsProofs } from './routing/accepted-attempts.ts'
import { allowedAttempts } from './routing/allowed-models.ts'
import { readIdempotencyKey } from './idempotency/key-header.ts'
import type { IdempotentRequest } from './idempotency/idempotent-request.ts'
import { dependsOnProof, provenAttempts, strongestFirst } from './routing/proven-first.ts'
import type { PlannedAttempt } from './routing/plan.ts'
import { reportLimitReached } from './settle/alerts.ts'
import {
  admit,
  CostNotCovered,
  MinuteUsedUp,
  RESERVATION_SLACK_MS,
  type Admission,
} from './settle/admit.ts'
import type { AudioBound, UsageBound } from './stream/cap-tokens.ts'
import { worstCase } from './settle/price.ts'
import { release } from './settle/release.ts'
import { StorageUnavailable, type Database } from './storage/database.ts'

/**
 * How long the worker refuses a key that has used up its minute without asking the storage, ms. It is short so that a limit
 * that the operator raises soon takes effect.
 */
const MINUTE_REFUSED_MS = 5_000

/**
 * Refuses a request whose key has used up its minute, before its body is read. A request with an `Idempotency-Key` passes:
 * it may repeat an answered one, and a repeat does not count.
 * @throws ApiError `rate_limit_exceeded`
 */
export function refuseUsedUp({ headers }: Request, { shared }: Context, key: PresentedKey): void {
  if (readIdempotencyKey(headers) === undefined) shared.minuteRefusals.check(key.keyHash)
}

/** What a request needs: its planned attempts, and its maximum cost and duration. */
interface Demand {
  /** Attempts on providers that meet the constraints of the request. */
  readonly attempts: readonly PlannedAttempt[]
  readonly constraints: Constraints | undefined
  readonly maxUsageOn: (route: Route) => UsageBound | AudioBound
  /** Maximum duration of the request. */
  readonly maxDelayMs: number
  /** Set for a request with an `Idempotency-Key`. */
  readonly idempotent: IdempotentRequest | undefined
}

/** The attempts that a key allows, and the constraints on them. */
interface Allowed {
  /** Attempts on routes that the key may use and whose providers are attested as the key requires. */
  readonly attempts: readonly PlannedAttempt[]
  /** The constraints of the request combined with those of its key. */
  readonly constraints: Constraints | undefined
}

/** An admitted request, whose reservation covers each of its attempts. */
type Admitted = Allowed & { readonly admission: Admission }

/**
 * Admits a request and reserves its maximum cost. Releases the reservation if the key may use none of the routes. If the
 * storage fails, it is unknown whether a reservation was written, so a release is attempted in the background.
 * @throws ApiError as `admit` does; `model_not_allowed`, `attestation_not_accepted`
 * @throws StorageUnavailable when the storage does not answer
 * @throws LinkUnavailable when the daemon cannot report which providers are verified
 */
export async function admitRequest(
  context: Context,
  key: PresentedKey,
  demand: Demand,
): Promise<Admitted> {
  const { requestId, config } = context
  const ledger = context.storage.customer(key.customerId, context.yieldDuring)
  const now = context.now()
  try {
    const { admission, attempts } = await reserve(context, key, demand, { ledger, now })
    demand.idempotent?.hold()
    if (config.service.telemetry?.customer_names === true) {
      context.traces.nameCustomer(requestId, admission.customerName)
    }
    return { admission, ...(await allowedOrReleased(context, admission, { ...demand, attempts })) }
  } catch (error) {
    if (isLimitReached(error) && config.service.webhooks !== undefined) {
      const { customerId, keyPrefix } = key
      // The storage keeps one report for each limit and period; this check avoids most of the writes for further refusals.
      if (context.watch.mayReport(keyPrefix, now)) {
        context.waitUntil(
          reportLimitReached(ledger, { customerId, keyPrefix }, now).catch(() => {}),
        )
      }
    }
    if (error instanceof MinuteUsedUp) {
      const ms = Math.min(error.endsAt - now, MINUTE_REFUSED_MS)
      context.shared.minuteRefusals.remember(key.keyHash, ms, () => error.again(context.now()))
    }
    if (error instanceof StorageUnavailable) {
      context.lostAdmissions.release(requestId, key.customerId, ledger)
    }
    throw error
  }
}

/**
 * Reserves the cost of the most expensive attempt. Only the ledger's answer tells which routes the key may use; so only if
 * the ledger refuses that cost, reserves again for the attempts that the key allows.
 */
async function reserve(
  context: Context,
  key: PresentedKey,
  demand: Demand,
  { ledger, now }: { readonly ledger: Database; readonly now: number },
): Promise<Pick<Admitted, 'admission' | 'attempts'>> {
  const { plans, service } = context.config
  const usdEur = service.usd_eur
  const within = (attempts: Demand['attempts']) => {
    const routes = attempts.map(({ route }) => route)
    return admit(ledger, {
      requestId: context.requestId,
      key,
      plans,
      reserveNano: (discountPct) => worstCase(routes, demand.maxUsageOn, { discountPct, usdEur }),
      claim: demand.idempotent?.claim,
      expiresAt: now + demand.maxDelayMs + RESERVATION_SLACK_MS,
      now,
    })
  }
  try {
    return { admission: await within(demand.attempts), attempts: demand.attempts }
  } catch (error) {
    if (!(error instanceof CostNotCovered)) throw error
    const { attempts } = await attemptsAllowed(context, error, demand)
    if (attempts.length === demand.attempts.length) throw error
    return { admission: await within(attempts), attempts }
  }
}

const isLimitReached = (error: unknown) =>
  error instanceof ApiError && error.code === 'insufficient_quota'

/**
 * The attempts whose providers are verified as their configuration requires and meet the constraints of the request, in the
 * order of the operator's selection.
 * @throws ApiError `attestation_not_accepted`
 * @throws LinkUnavailable when the daemon cannot report which providers are verified
 */
export async function attemptsAccepted(
  context: Context,
  constraints: Constraints | undefined,
  attempts: readonly PlannedAttempt[],
): Promise<readonly PlannedAttempt[]> {
  const wanted = dependsOnProof(attempts) || (constraints && needsProofs(constraints))
  const proofs = wanted === true ? await context.link.recentProofs() : []
  const ordered = wanted === true ? orderedByProof(context, attempts, proofs) : attempts
  return constraints === undefined ? ordered : acceptedAttempts(ordered, constraints, proofs)
}

function orderedByProof(
  { config, health, now, owner }: Context,
  attempts: readonly PlannedAttempt[],
  proofs: readonly ProviderProof[],
): readonly PlannedAttempt[] {
  const at = now()
  const proven = provenAttempts(attempts, proofs, at)
  if (config.service.selection !== 'strength') return proven
  return health.openCircuitsLast(strongestFirst(proven, proofs), at, owner)
}

/** The attempts that a key allows. If there are none, releases the reservation before it throws. */
async function allowedOrReleased(
  context: Context,
  admission: Admission,
  demand: Demand,
): Promise<Allowed> {
  try {
    return await attemptsAllowed(context, admission, demand)
  } catch (error) {
    await releaseAdmission(context, admission)
    throw error
  }
}

/**
 * The attempts on routes that a key may use and whose providers are attested as the key requires.
 * @throws ApiError `model_not_allowed`, `attestation_not_accepted`
 * @throws LinkUnavailable when the daemon cannot report which providers are verified
 */
async function attemptsAllowed(
  context: Context,
  key: Pick<Admission, 'models' | 'minAttestation'>,
  { attempts, constraints: required }: Pick<Demand, 'attempts' | 'constraints'>,
): Promise<Allowed> {
  const allowed = allowedAttempts(context.catalogue, attempts, key.models)
  const constraints = withMinimum(required, key.minAttestation)
  if (constraints === required) return { attempts: allowed, constraints }
  return { attempts: await attemptsAccepted(context, constraints, allowed), constraints }
}

/** Releases the reservation of a request that costs nothing. */
export function releaseAdmission(context: Context, { customerId }: Admission): Promise<void> {
  const { requestId, storage, log, yieldDuring } = context
  return release(requestId, { ledger: storage.customer(customerId, yieldDuring), log })
}
