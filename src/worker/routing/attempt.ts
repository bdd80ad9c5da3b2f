import { ApiError } from '../http/errors.ts'
import type { Log } from '../http/log.ts'
import { AttemptFailure, type Failure } from '../provider/failure.ts'
import type { RouteHealth } from './health.ts'
import type { PlannedAttempt } from './plan.ts'

/** One try of one route; resolves once the route has answered, rejects with an `AttemptFailure`. */
export type Turn<T> = (attempt: PlannedAttempt, isLast: boolean) => Promise<T>

export interface AttemptTools {
  readonly health: RouteHealth
  readonly log: Log
  readonly requestId: string
  readonly now: () => number
  /** Resolves after so many milliseconds, rejects with the signal's reason when it aborts first. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Whether a turn's duration is a time to the first delta, which is what routes are compared by. */
  readonly timesFirstDelta: boolean
  /** All tries of one request together. */
  readonly maxAttempts: number
  /** Aborts when the request's time is used up or its client has left; the reason is what to throw. */
  readonly budget: AbortSignal
}

export interface Served<T> {
  readonly attempt: PlannedAttempt
  readonly value: T
}

/** Before the only route is asked once more after a connection that never answered. */
const SAME_ROUTE_PAUSE_MS = 100

/** What a failure means for the attempts that are left: try on, try on with another model, or give up. */
const FINAL_ERRORS: Partial<Record<Failure['kind'], () => ApiError>> = {
  rejected: () =>
    new ApiError('upstream_rejected', 'The provider refused this request as invalid.'),
  content_policy: () =>
    new ApiError(
      'content_policy_violation',
      'The provider refused this request by its content policy.',
    ),
}

/**
 * Tries the planned attempts in order until one serves (DESIGN: one attempt budget, one wall-clock budget).
 * The plan is flat: nothing is decided here but whether a failure ends the request or the next route is tried.
 * @throws ApiError when no route served, or when a provider's refusal is final
 */
export async function attemptRoutes<T>(
  attempts: readonly PlannedAttempt[],
  turn: Turn<T>,
  tools: AttemptTools,
): Promise<Served<T>> {
  const queue = withRepeat(attempts).slice(0, tools.maxAttempts)
  const last = Math.min(attempts.length, queue.length) - 1
  const failures: Failure[] = []
  const tooSmall = new Set<string>()
  let ownRepeatAllowed = false
  for (const [index, attempt] of queue.entries()) {
    if (tooSmall.has(attempt.route.modelKey)) continue
    if (index >= attempts.length) {
      if (!ownRepeatAllowed) break
      await tools.pause(SAME_ROUTE_PAUSE_MS, tools.budget)
    }
    tools.budget.throwIfAborted()
    const startedAt = tools.now()
    tools.health.started(attempt.route, startedAt)
    try {
      const value = await turn(attempt, index >= last)
      const took = tools.timesFirstDelta ? tools.now() - startedAt : undefined
      tools.health.succeeded(attempt.route, tools.now(), took)
      return { attempt, value }
    } catch (error) {
      tools.budget.throwIfAborted()
      if (!(error instanceof AttemptFailure)) throw error
      const { failure } = error
      noteFailure(attempt, failure, index, tools)
      const final = FINAL_ERRORS[failure.kind]
      if (final) throw final()
      failures.push(failure)
      if (failure.kind === 'context_length') tooSmall.add(attempt.route.modelKey)
      ownRepeatAllowed = failure.kind === 'unavailable' && failure.unanswered === true
    }
  }
  throw allFailed(failures, attempts.length)
}

/** A plan of one route asks it a second time, but only where the first try got no byte of an answer. */
function withRepeat(attempts: readonly PlannedAttempt[]): readonly PlannedAttempt[] {
  return attempts.length === 1 ? [...attempts, ...attempts] : attempts
}

/** A refusal of the request says nothing against the route. */
const BLAMELESS: ReadonlySet<Failure['kind']> = new Set([
  'rejected',
  'context_length',
  'content_policy',
])

function noteFailure(
  attempt: PlannedAttempt,
  failure: Failure,
  index: number,
  tools: AttemptTools,
): void {
  if (BLAMELESS.has(failure.kind)) tools.health.succeeded(attempt.route, tools.now(), undefined)
  else tools.health.failed(attempt.route, tools.now(), failure)
  tools.log('attempt_failed', {
    request_id: tools.requestId,
    route: attempt.route.id,
    attempt: index + 1,
    failure: failure.kind,
    ...(failure.status === undefined ? {} : { status: failure.status }),
  })
}

function allFailed(failures: readonly Failure[], planned: number): ApiError {
  const waits = failures.flatMap(({ retryAfterMs }) => retryAfterMs ?? [])
  const retryAfter = waits.length > 0 ? { retryAfter: Math.min(...waits) / 1000 } : {}
  const every = (kind: Failure['kind']) => failures.every((failure) => failure.kind === kind)
  if (failures.length > 0 && every('context_length')) {
    return new ApiError(
      'context_length_exceeded',
      'This request is longer than the context window of the model.',
      { param: 'messages' },
    )
  }
  if (failures.length > 0 && every('rate_limited')) {
    return new ApiError(
      'upstream_rate_limit',
      'Every route for this request is rate limited.',
      retryAfter,
    )
  }
  if (planned === 1 && failures.at(-1)?.kind === 'unclassified') {
    return new ApiError('bad_gateway', 'The provider failed to answer this request.')
  }
  return new ApiError('routes_unavailable', 'No route for this request is available.', retryAfter)
}
