import type { OwnSignal } from '../calls/own-signal.ts'
import type { Log } from '../http/log.ts'
import { LinkUnavailable } from '../link/link.ts'
import {
  AttemptFailure,
  SilentFailure,
  type Failure,
  type FailureKind,
} from '../provider/failure.ts'
import { CONCLUSIVE_MS, type AttemptShare } from './attempt-share.ts'
import type { Budget } from './budget.ts'
import type { CarriedCall, CarriedCalls } from './carried-calls.ts'
import { REQUEST_FAULTS } from './health-circuit.ts'
import type { RouteHealth } from './health.ts'
import type { PlannedAttempt } from './plan.ts'
import type { FailureMapping } from './failure-mapping.ts'

/**
 * One attempt on one route; resolves once the route has answered, rejects with an `AttemptFailure`. `limitMs` is its
 * timeout while other routes remain; undefined where only the budget limits it.
 */
export type AttemptFn<T> = (attempt: PlannedAttempt, limitMs: number | undefined) => Promise<T>

export interface AttemptDeps {
  readonly health: RouteHealth
  readonly log: Log
  readonly requestId: string
  readonly customerId: string
  readonly now: () => number
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when the signal aborts first. */
  readonly pause: (ms: number, signal: OwnSignal) => Promise<void>
  /** Whether an attempt's duration is its time to the first delta, by which routes are compared. */
  readonly timesFirstDelta: boolean
  /** The client errors for the failures of this endpoint. */
  readonly failureMapping: FailureMapping
  /** Maximum number of attempts of one request. */
  readonly maxAttempts: number
  /**
   * Its signal aborts when the request's time is used up or its client has disconnected; the reason is the error to
   * throw.
   */
  readonly budget: Pick<Budget, 'signal' | 'expired' | 'left'>
  readonly carriedCalls: Pick<CarriedCalls, 'begin'>
  /** Keeps work alive after the request's response has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void
  /** Timeout of an attempt while other routes remain; absent where attempts have their own timeouts (streams). */
  readonly shareOf?: (leftMs: number) => AttemptShare
}

export interface Served<T> {
  readonly attempt: PlannedAttempt
  readonly value: T
  /** To be ended when no more of the answer is awaited. */
  readonly carried: CarriedCall
}

/** Pause before the second attempt on the only route, after a connection that got no answer. */
const SAME_ROUTE_PAUSE_MS = 100

/**
 * Tries the planned attempts in order until one serves, within one attempt budget and one wall-clock budget. The plan
 * decides the order; this decides only whether a failure ends the request or the next route is tried.
 * @throws ApiError when no route served, or when a provider's refusal is final
 * @throws LinkUnavailable when the daemon, or its thread that carried an attempt, was lost meanwhile
 */
export async function attemptRoutes<T>(
  attempts: readonly PlannedAttempt[],
  attemptFn: AttemptFn<T>,
  deps: AttemptDeps,
): Promise<Served<T>> {
  const queue = withRepeat(attempts).slice(0, deps.maxAttempts)
  const { signal } = deps.budget
  const failures: Failure[] = []
  const tooSmall = new Set<string>()
  let ownRepeatAllowed = false
  for (const [index, attempt] of queue.entries()) {
    if (tooSmall.has(attempt.route.modelKey)) continue
    if (index >= attempts.length) {
      if (!ownRepeatAllowed) break
      await deps.pause(SAME_ROUTE_PAUSE_MS, signal)
    }
    signal.throwIfAborted()
    const others = queue.slice(index + 1, attempts.length)
    const remain = others.some(({ route }) => !tooSmall.has(route.modelKey))
    const share = remain ? deps.shareOf?.(deps.budget.left()) : undefined
    const startedAt = deps.now()
    deps.health.started(attempt.route, startedAt, deps.customerId)
    const carried = deps.carriedCalls.begin(attempt.route)
    try {
      const value = await attemptFn(attempt, share?.ms)
      const took = deps.timesFirstDelta ? deps.now() - startedAt : undefined
      noteServed(attempt, index, took, deps)
      return { attempt, value, carried }
    } catch (error) {
      if (signal.aborted) {
        if (deps.budget.expired && deps.now() - startedAt >= CONCLUSIVE_MS) {
          noteExpired(attempt, index, carried, deps)
        } else carried.end()
        throw signal.reason
      }
      const { failure, isDaemonGone } = await failureOf(error, carried).finally(() => carried.end())
      const inconclusive =
        failure.kind === 'timeout' && !failure.unanswered && share?.conclusive === false
      const saysNothing =
        inconclusive || failure.isOwn === true || failure.kind === 'attestation_not_accepted'
      if (saysNothing) logFailure(attempt, failure, index, deps)
      else noteFailure(attempt, failure, index, deps)
      const final = deps.failureMapping.final[failure.kind]
      if (final) throw final()
      failures.push(failure)
      if (failure.kind === 'context_length') tooSmall.add(attempt.route.modelKey)
      ownRepeatAllowed = failure.kind === 'unavailable' && failure.unanswered === true
      if (isDaemonGone && remain) await carried.daemonBack((ms) => deps.pause(ms, signal))
    }
  }
  throw deps.failureMapping.allFailed(failures, attempts.length)
}

/**
 * Finds the failure of the route. A lost daemon looks like a silent provider, so after a silent failure the daemon is
 * checked.
 * @throws unknown the error itself, or LinkUnavailable, where the route did not fail
 */
async function failureOf(
  error: unknown,
  carried: CarriedCall,
): Promise<{ readonly failure: Failure; readonly isDaemonGone: boolean }> {
  const isSilent = error instanceof SilentFailure || error instanceof LinkUnavailable
  const lost = isSilent ? await carried.lostThread() : undefined
  if (lost?.failure !== undefined) return { failure: lost.failure, isDaemonGone: true }
  if (error instanceof AttemptFailure && lost === undefined) {
    return { failure: error.failure, isDaemonGone: false }
  }
  throw lost?.error ?? error
}

/** A plan with a single route may try it twice; the second time only when the first attempt got no byte of an answer. */
function withRepeat(attempts: readonly PlannedAttempt[]): readonly PlannedAttempt[] {
  return attempts.length === 1 ? [...attempts, ...attempts] : attempts
}

function noteServed(
  { route, failover }: PlannedAttempt,
  index: number,
  firstDeltaMs: number | undefined,
  deps: AttemptDeps,
): void {
  deps.health.succeeded(route, deps.now(), firstDeltaMs, deps.customerId)
  deps.log('attempt_served', {
    request_id: deps.requestId,
    route: route.id,
    attempt: index + 1,
    failover,
    ...(firstDeltaMs === undefined ? {} : { first_delta_ms: firstDeltaMs }),
  })
}

/**
 * Failures that the content of a request may cause, unless no connection was made. This includes timeouts: a client can
 * cause one at will, with a long answer and a short deadline.
 */
const CONTENT_KINDS: ReadonlySet<FailureKind> = new Set(['unavailable', 'unclassified', 'timeout'])

function noteFailure(
  attempt: PlannedAttempt,
  failure: Failure,
  index: number,
  deps: AttemptDeps,
): void {
  const { health, customerId } = deps
  const { route } = attempt
  if (REQUEST_FAULTS.has(failure.kind)) health.succeeded(route, deps.now(), undefined, customerId)
  else {
    const mayBeContent = failure.unanswered !== true && CONTENT_KINDS.has(failure.kind)
    health.failed(route, deps.now(), { ...failure, mayBeContent }, customerId)
  }
  logFailure(attempt, failure, index, deps)
}

/** Records a failure of a route that had enough time but had not answered when the request's time ran out. */
function noteExpired(
  attempt: PlannedAttempt,
  index: number,
  carried: CarriedCall,
  deps: AttemptDeps,
): void {
  const note = async () => {
    const lost = await carried.lostThread()
    carried.end()
    const failure = lost === undefined ? { kind: 'timeout' as const } : lost.failure
    if (failure !== undefined) noteFailure(attempt, failure, index, deps)
  }
  // The client does not wait for the daemon's reply, which may arrive after the client's answer.
  deps.waitUntil(note())
}

function logFailure(
  attempt: PlannedAttempt,
  failure: Failure,
  index: number,
  deps: AttemptDeps,
): void {
  deps.log('attempt_failed', {
    request_id: deps.requestId,
    route: attempt.route.id,
    attempt: index + 1,
    failure: failure.kind,
    ...(failure.status === undefined ? {} : { status: failure.status }),
  })
}
