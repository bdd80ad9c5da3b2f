import { withMinimum, type Constraints } from '../protocol/constraints.ts'
import type { ProviderProof } from '../protocol/provider-proof.ts'
import type { PresentedKey } from './auth/api-key.ts'
import type { Context } from './context.ts'
import { ApiError } from './http/errors.ts'
import type { Route } from './provider/route.ts'
import { acceptedAttempts, needsProofs } from './routing/accepted-attempts.ts'
import { allowedAttempts } from './routing/allowed-models.ts'
import { readIdempotencyKey } from './idempotency/key-header.ts'
import type { Once } from './idempotency/once.ts'
import { dependsOnProof, provenAttempts, strongestFirst } from './routing/proven-first.ts'
import type { PlannedAttempt } from './routing/plan.ts'
import { reportLimitReached } from './settle/alerts.ts'
import { admit, MinuteUsedUp, RESERVATION_SLACK_MS, type Admission } from './settle/admit.ts'
import type { AudioBound, UsageBound } from './stream/cap-tokens.ts'
import { worstCase } from './settle/price.ts'
import { release } from './settle/release.ts'
import { StorageUnavailable } from './storage/database.ts'

/**
 * How long a key that has used up its minute is refused without asking the storage, ms: so soon a limit that the operator
 * raises takes effect.
 */
const MINUTE_REFUSED_MS = 5_000

/**
 * Refuses a request whose key has used up its minute, before its body is read. A request with an `Idempotency-Key` may
 * be the repeat of an answered one, which does not count.
 * @throws ApiError `rate_limit_exceeded`
 */
export function refuseUsedUp({ headers }: Request, { shared }: Context, key: PresentedKey): void {
  if (readIdempotencyKey(headers) === undefined) shared.minuteRefusals.check(key.keyHash)
}

/** The maximum cost and duration of a request. */
export interface CostBound {
  /** The routes that may serve the request. */
  readonly routes: readonly Route[]
  readonly maxUsageOn: (route: Route) => UsageBound | AudioBound
  /** Maximum duration of the request. */
  readonly maxDelayMs: number
  /** Set for a request with an `Idempotency-Key`. */
  readonly once: Once | undefined
}

/**
 * Admits the request of a key and reserves the maximum it can cost. If the storage fails, it is unknown whether a
 * reservation was written, so a release is attempted in the background.
 * @throws ApiError as `admit` does
 * @throws StorageUnavailable when the storage does not answer
 */
export async function admitRequest(
  context: Context,
  key: PresentedKey,
  { routes, maxUsageOn, maxDelayMs, once }: CostBound,
): Promise<Admission> {
  const { requestId, config } = context
  const usdEur = config.service.usd_eur
  const ledger = context.storage.customer(key.customerId, context.aside)
  const now = context.now()
  try {
    const admission = await admit(ledger, {
      requestId,
      key,
      plans: config.plans,
      reserveNano: (discountPct) => worstCase(routes, maxUsageOn, { discountPct, usdEur }),
      claim: once?.claim,
      expiresAt: now + maxDelayMs + RESERVATION_SLACK_MS,
      now,
    })
    once?.hold()
    if (config.service.telemetry?.customer_names === true) {
      context.traces.nameCustomer(requestId, admission.customerName)
    }
    return admission
  } catch (error) {
    if (isLimitReached(error) && config.service.webhooks !== undefined) {
      const { customerId, keyPrefix } = key
      // The storage keeps one report for each limit and period; this saves most writes for further refusals.
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

const isLimitReached = (error: unknown) =>
  error instanceof ApiError && error.code === 'insufficient_quota'

/**
 * The attempts whose providers are verified as their configuration demands and meet the request's constraints, in the
 * order of the operator's selection.
 * @throws ApiError `attestation_not_accepted`
 * @throws LinkUnavailable when the daemon cannot tell what is proven
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
  { config, health, now }: Context,
  attempts: readonly PlannedAttempt[],
  proofs: readonly ProviderProof[],
): readonly PlannedAttempt[] {
  const at = now()
  const proven = provenAttempts(attempts, proofs, at)
  if (config.service.selection !== 'strength') return proven
  return health.openCircuitsLast(strongestFirst(proven, proofs), at)
}

/** What is left to try of an admitted request, and under which constraints. */
export interface AllowedAttempts {
  readonly attempts: readonly PlannedAttempt[]
  /** Those of the request and of its key. */
  readonly constraints: Constraints | undefined
}

/**
 * The attempts of an admitted request whose routes its key may use and whose providers are attested as its key requires.
 * Where there are none the reservation is given back first.
 * @throws ApiError `model_not_allowed`, `attestation_not_accepted`
 * @throws LinkUnavailable when the daemon cannot tell what is proven
 */
export async function attemptsAllowed(
  context: Context,
  admission: Admission,
  { attempts, constraints: required }: AllowedAttempts,
): Promise<AllowedAttempts> {
  try {
    const allowed = allowedAttempts(context.catalogue, attempts, admission.models)
    const constraints = withMinimum(required, admission.minAttestation)
    if (constraints === required) return { attempts: allowed, constraints }
    return { attempts: await attemptsAccepted(context, constraints, allowed), constraints }
  } catch (error) {
    await releaseAdmission(context, admission)
    throw error
  }
}

/** Releases the reservation of a request that costs nothing. */
export function releaseAdmission(context: Context, { customerId }: Admission): Promise<void> {
  const { requestId, storage, log, aside } = context
  return release(requestId, { ledger: storage.customer(customerId, aside), log })
}
