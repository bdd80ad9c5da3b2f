import { OwnSignal } from '../../src/worker/calls/own-signal.ts'
import { ApiError } from '../../src/worker/http/errors.ts'
import type { LogFields } from '../../src/worker/http/log.ts'
import type { LinkUnavailable } from '../../src/worker/link/link.ts'
import { AttemptFailure, type Failure } from '../../src/worker/provider/failure.ts'
import { isCarried, type Route } from '../../src/worker/provider/route.ts'
import { attemptRoutes } from '../../src/worker/routing/attempt.ts'
import { attemptShare } from '../../src/worker/routing/attempt-share.ts'
import type { CarriedCall } from '../../src/worker/routing/carried-calls.ts'
import type { Catalogue } from '../../src/worker/routing/catalogue.ts'
import { createRouteHealth, type RouteHealth } from '../../src/worker/routing/health.ts'
import { planChat, type PlannedAttempt } from '../../src/worker/routing/plan.ts'
import { CHAT_FAILURE_MAPPING } from '../../src/worker/routing/failure-mapping.ts'
import { catalogueOf, tokenPrice } from './router-config.ts'

const pricing = tokenPrice('eur', 1, 2)
const CATALOGUE = catalogueOf({
  'nova/glm': { pricing },
  'vela/glm': { pricing },
  'nova/oss': { pricing },
  'solo/lone': { pricing },
})

/** By route id; a route that is not named serves. */
export type Answers = Readonly<
  Record<string, Failure | AttemptFailure | LinkUnavailable | 'served'>
>

/** What a run is given besides the answers of its routes. */
export interface Run {
  readonly model: string
  readonly failover?: readonly string[]
  readonly maxAttempts?: number
  readonly budget?: OwnSignal
  readonly budgetMs?: number
  /** What ends the budget. */
  readonly cause?: 'time' | 'client'
  readonly syncAttemptMs?: number
  /** How long routes say nothing before they answer as told. */
  readonly silences?: Readonly<Record<string, number>>
  readonly catalogue?: Catalogue
  /** Whose request it is. */
  readonly customer?: string
  /** The health of earlier runs; a new one unless given. */
  readonly health?: RouteHealth
  /** The provider that is called through the daemon. */
  readonly pinned?: string
  /** What becomes of the daemon's thread that carries a call; it lives on unless given. */
  readonly lostThread?: CarriedCall['lostThread']
  /** Whether the daemon is back in time for another route. */
  readonly daemonBack?: () => Promise<void>
}

/** A route rests after five errors. */
export function newHealth(): RouteHealth {
  return createRouteHealth({ errors: 5, window_ms: 1_000, cooldown_ms: 1_000 }, 'order')
}

/** Runs the loop over a plan; each route answers as told. */
export async function runAttempts(answers: Answers, { model, failover = [], ...rest }: Run) {
  const { attempts } = planChat(
    rest.catalogue ?? CATALOGUE,
    { model, failover, reasoning: undefined },
    { order: (routes) => routes },
  )
  const tried: string[] = []
  const limits: (number | undefined)[] = []
  const logged: (LogFields | undefined)[] = []
  const kept: Promise<unknown>[] = []
  const open = new Set<CarriedCall>()
  let clock = 0
  const budget = budgetOf(rest, () => clock)
  const health = rest.health ?? newHealth()
  const outcome = await attemptRoutes(
    attempts.map((attempt) => through(rest.pinned, attempt)),
    async ({ route }, limitMs) => {
      tried.push(route.id)
      limits.push(limitMs)
      const answer = answers[route.id] ?? 'served'
      const silence = rest.silences?.[route.id]
      if (silence !== undefined) clock += Math.min(silence, limitMs ?? Number.POSITIVE_INFINITY)
      budget.check()
      budget.signal.throwIfAborted()
      if (answer instanceof Error) throw answer
      if (answer !== 'served') throw new AttemptFailure(answer)
      return route.id
    },
    {
      health,
      log: (_event, fields) => logged.push(fields),
      requestId: 'r',
      customerId: rest.customer ?? 'acme',
      now: () => clock,
      pause: async () => {},
      timesFirstDelta: true,
      failureMapping: CHAT_FAILURE_MAPPING,
      maxAttempts: rest.maxAttempts ?? 6,
      budget,
      shareOf: (leftMs) => attemptShare(leftMs, rest.syncAttemptMs),
      carriedCalls: { begin: (route) => begin(route, rest, open) },
      waitUntil: (work) => void kept.push(work),
    },
  ).catch((error: unknown) => error)
  await Promise.all(kept)
  const restsFor = (customer: string) =>
    attempts[0] !== health.openCircuitsLast(attempts, clock, customer)[0]
  return {
    outcome,
    tried,
    limits,
    logged,
    open: open.size,
    health: health.snapshot(clock),
    /** Whether the first route of the plan comes after another for this customer. */
    restsFor,
  }
}

/** A call that counts as open until it is ended. */
function begin(
  route: Route,
  { lostThread = async () => undefined, daemonBack = async () => {} }: Omit<Run, 'model'>,
  open: Set<CarriedCall>,
): CarriedCall {
  const call = {
    lostThread: isCarried(route) ? lostThread : async () => undefined,
    daemonBack,
    end: () => void open.delete(call),
  }
  open.add(call)
  return call
}

function through(provider: string | undefined, attempt: PlannedAttempt): PlannedAttempt {
  const { route } = attempt
  if (route.provider.name !== provider) return attempt
  return { ...attempt, route: { ...route, provider: { ...route.provider, isCarried: true } } }
}

/** A budget whose clock stands still unless a route is silent. */
function budgetOf(
  { budget, budgetMs = 180_000, cause = 'time' }: Omit<Run, 'model'>,
  now: () => number,
) {
  const signal = budget ?? new OwnSignal()
  return {
    signal,
    get expired() {
      return cause === 'time' && signal.aborted
    },
    left: () => Math.max(0, budgetMs - now()),
    check: () => {
      if (now() >= budgetMs) signal.abort(new ApiError('upstream_timeout', 'out of time'))
    },
  }
}
