import type { Log } from '../http/log.ts'
import { AttemptFailure, type Failure } from '../provider/failure.ts'
import { TELLING_MS, type AttemptShare } from './attempt-share.ts'
import type { Budget } from './budget.ts'
import type { RouteHealth } from './health.ts'
import type { PlannedAttempt } from './plan.ts'
import type { FailureMapping } from './failure-mapping.ts'

/**
 * One try of one route; resolves once the route has answered, rejects with an `AttemptFailure`. `limitMs` is the
 * time it may take because other routes remain; undefined where the budget alone limits it.
 */
export type AttemptFn<T> = (attempt: PlannedAttempt, limitMs: number | undefined) => Promise<T>

export interface AttemptTools {
  readonly health: RouteHealth
  readonly log: Log
  readonly requestId: string
  readonly now: () => number
  /** Resolves after so many milliseconds, rejects with the signal's reason when it aborts first. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Whether a turn's duration is a time to the first delta, which is what routes are compared by. */
  readonly timesFirstDelta: boolean
  /** What failures mean to the callers of this endpoint. */
  readonly verdicts: FailureMapping
  /** All tries of one request together. */
  readonly maxAttempts: number
  /** Its signal aborts when the request's time is used up or its client has left; the reason is what to throw. */
  readonly budget: Pick<Budget, 'signal' | 'expired' | 'left'>
  /** What an attempt may take of the time left while other routes remain; absent where it has clocks of its own. */
  readonly shareOf?: (leftMs: number) => AttemptShare
}

export interface Served<T> {
  readonly attempt: PlannedAttempt
  readonly value: T
}

/** Before the only route is asked once more after a connection that never answered. */
const SAME_ROUTE_PAUSE_MS = 100

/**
 * Tries the planned attempts in order until one serves, within one attempt budget and one wall-clock budget.
 * The plan is flat: nothing is decided here but whether a failure ends the request or the next route is tried.
 * @throws ApiError when no route served, or when a provider's refusal is final
 */
export async function attemptRoutes<T>(
  attempts: readonly PlannedAttempt[],
  turn: AttemptFn<T>,
  tools: AttemptTools,
): Promise<Served<T>> {
  const queue = withRepeat(attempts).slice(0, tools.maxAttempts)
  const { signal } = tools.budget
  const failures: Failure[] = []
  const tooSmall = new Set<string>()
  let ownRepeatAllowed = false
  for (const [index, attempt] of queue.entries()) {
    if (tooSmall.has(attempt.route.modelKey)) continue
    if (index >= attempts.length) {
      if (!ownRepeatAllowed) break
      await tools.pause(SAME_ROUTE_PAUSE_MS, signal)
    }
    signal.throwIfAborted()
    const others = queue.slice(index + 1, attempts.length)
    const remain = others.some(({ route }) => !tooSmall.has(route.modelKey))
    const share = remain ? tools.shareOf?.(tools.budget.left()) : undefined
    const startedAt = tools.now()
    tools.health.started(attempt.route, startedAt)
    try {
      const value = await turn(attempt, share?.ms)
      const took = tools.timesFirstDelta ? tools.now() - startedAt : undefined
      noteServed(attempt, index, took, tools)
      return { attempt, value }
    } catch (error) {
      if (signal.aborted) {
        noteExpired(attempt, index, startedAt, tools)
        throw signal.reason
      }
      if (!(error instanceof AttemptFailure)) throw error
      const { failure } = error
      const hurried = failure.kind === 'timeout' && !failure.unanswered && share?.telling === false
      if (hurried) logFailure(attempt, failure, index, tools)
      else noteFailure(attempt, failure, index, tools)
      const final = tools.verdicts.final[failure.kind]
      if (final) throw final()
      failures.push(failure)
      if (failure.kind === 'context_length') tooSmall.add(attempt.route.modelKey)
      ownRepeatAllowed = failure.kind === 'unavailable' && failure.unanswered === true
    }
  }
  throw tools.verdicts.allFailed(failures, attempts.length)
}

/** A plan of one route asks it a second time, but only where the first try got no byte of an answer. */
function withRepeat(attempts: readonly PlannedAttempt[]): readonly PlannedAttempt[] {
  return attempts.length === 1 ? [...attempts, ...attempts] : attempts
}

function noteServed(
  { route, failover }: PlannedAttempt,
  index: number,
  firstDeltaMs: number | undefined,
  tools: AttemptTools,
): void {
  tools.health.succeeded(route, tools.now(), firstDeltaMs)
  tools.log('attempt_served', {
    request_id: tools.requestId,
    route: route.id,
    attempt: index + 1,
    failover,
    ...(firstDeltaMs === undefined ? {} : { first_delta_ms: firstDeltaMs }),
  })
}

/** A refusal of the request says nothing against the route. */
const BLAMELESS: ReadonlySet<Failure['kind']> = new Set([
  'rejected',
  'context_length',
  'content_policy',
  'file_rejected',
  'file_too_large',
  'file_type_rejected',
])

function noteFailure(
  attempt: PlannedAttempt,
  failure: Failure,
  index: number,
  tools: AttemptTools,
): void {
  if (BLAMELESS.has(failure.kind)) tools.health.succeeded(attempt.route, tools.now(), undefined)
  else tools.health.failed(attempt.route, tools.now(), failure)
  logFailure(attempt, failure, index, tools)
}

/** A route that was silent until the request's time was over has failed, unless it was asked too late to tell. */
function noteExpired(
  attempt: PlannedAttempt,
  index: number,
  startedAt: number,
  tools: AttemptTools,
): void {
  if (!tools.budget.expired || tools.now() - startedAt < TELLING_MS) return
  noteFailure(attempt, { kind: 'timeout' }, index, tools)
}

function logFailure(
  attempt: PlannedAttempt,
  failure: Failure,
  index: number,
  tools: AttemptTools,
): void {
  tools.log('attempt_failed', {
    request_id: tools.requestId,
    route: attempt.route.id,
    attempt: index + 1,
    failure: failure.kind,
    ...(failure.status === undefined ? {} : { status: failure.status }),
  })
}
