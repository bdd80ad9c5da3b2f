import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import type { LogFields } from '../../../src/worker/http/log.ts'
import { AttemptFailure, type Failure } from '../../../src/worker/provider/failure.ts'
import { attemptRoutes } from '../../../src/worker/routing/attempt.ts'
import type { Catalogue } from '../../../src/worker/routing/catalogue.ts'
import { createRouteHealth } from '../../../src/worker/routing/health.ts'
import { planChat } from '../../../src/worker/routing/plan.ts'
import { CHAT_VERDICTS } from '../../../src/worker/routing/failure-mapping.ts'
import { refusalOf } from '../../support/refusal.ts'
import { catalogueOf, tokenPrice } from '../../support/router-config.ts'

const pricing = tokenPrice('eur', 1, 2)
const CATALOGUE = catalogueOf({
  'nova/glm': { pricing },
  'vela/glm': { pricing },
  'nova/oss': { pricing },
  'solo/lone': { pricing },
})

type Answers = Readonly<Record<string, Failure | 'served'>>

interface Run {
  readonly model: string
  readonly failover?: readonly string[]
  readonly maxAttempts?: number
  readonly budget?: AbortSignal
  readonly catalogue?: Catalogue
}

/** Runs the loop over a plan; each route answers as told. */
async function run(answers: Answers, { model, failover = [], ...rest }: Run) {
  const { attempts } = planChat(
    rest.catalogue ?? CATALOGUE,
    { model, failover, reasoning: undefined },
    { order: (routes) => routes },
  )
  const tried: string[] = []
  const lastFlags: boolean[] = []
  const logged: (LogFields | undefined)[] = []
  const health = createRouteHealth({ errors: 5, window_ms: 1_000, cooldown_ms: 1_000 }, 'order')
  const outcome = await attemptRoutes(
    attempts,
    async ({ route }, isLast) => {
      tried.push(route.id)
      lastFlags.push(isLast)
      const answer = answers[route.id] ?? 'served'
      if (answer !== 'served') throw new AttemptFailure(answer)
      return route.id
    },
    {
      health,
      log: (_event, fields) => logged.push(fields),
      requestId: 'r',
      now: () => 0,
      pause: async () => {},
      timesFirstDelta: true,
      verdicts: CHAT_VERDICTS,
      maxAttempts: rest.maxAttempts ?? 6,
      budget: rest.budget ?? new AbortController().signal,
    },
  ).catch((error: unknown) => error)
  return { outcome, tried, lastFlags, logged }
}

function refusal(outcome: unknown) {
  return refusalOf(() => {
    throw outcome
  })
}

const unavailable: Failure = { kind: 'unavailable', status: 503 }

describe('attempting routes', () => {
  it('asks no second route once one has served', async () => {
    const { outcome, tried } = await run({}, { model: 'glm' })
    expect(outcome).toMatchObject({ value: 'nova/glm', attempt: { failover: false } })
    expect(tried).toEqual(['nova/glm'])
  })

  it('tries the candidates of the primary before the entries of the caller, each route once', async () => {
    const answers = { 'nova/glm': unavailable, 'vela/glm': unavailable }
    const { outcome, tried } = await run(answers, { model: 'glm', failover: ['nova/glm', 'oss'] })
    expect(tried).toEqual(['nova/glm', 'vela/glm', 'nova/oss'])
    expect(outcome).toMatchObject({ value: 'nova/oss', attempt: { failover: true } })
  })

  it('tells a turn when it is the last that the plan or the attempt budget has', async () => {
    const answers = { 'nova/glm': unavailable, 'vela/glm': unavailable, 'nova/oss': unavailable }
    const criteria = { model: 'glm', failover: ['oss'] }
    expect((await run(answers, criteria)).lastFlags).toEqual([false, false, true])
    expect((await run(answers, { ...criteria, maxAttempts: 2 })).lastFlags).toEqual([false, true])
    expect((await run({}, { model: 'lone' })).lastFlags).toEqual([true])
  })

  it('repeats a route only where it is the only one and no byte of an answer came', async () => {
    const lost: Failure = { kind: 'unavailable', unanswered: true }
    expect((await run({ 'solo/lone': lost }, { model: 'lone' })).tried).toHaveLength(2)
    expect((await run({ 'solo/lone': unavailable }, { model: 'lone' })).tried).toHaveLength(1)
    const both = { 'nova/glm': lost, 'vela/glm': lost }
    expect((await run(both, { model: 'glm' })).tried).toEqual(['nova/glm', 'vela/glm'])
  })

  it('does not go beyond the attempt budget', async () => {
    const answers = { 'nova/glm': unavailable, 'vela/glm': unavailable }
    const { outcome, tried } = await run(answers, {
      model: 'glm',
      failover: ['oss'],
      maxAttempts: 2,
    })
    expect(tried).toEqual(['nova/glm', 'vela/glm'])
    expect(refusal(outcome).code).toBe('routes_unavailable')
  })

  it.each([
    ['rejected', 'upstream_rejected', 'The provider refused this request as invalid.'],
    [
      'content_policy',
      'content_policy_violation',
      'The provider refused this request by its content policy.',
    ],
  ] as const)('ends the request where a provider finds it %s', async (kind, code, message) => {
    const { outcome, tried } = await run(
      { 'nova/glm': { kind } },
      { model: 'glm', failover: ['oss'] },
    )
    expect(tried).toEqual(['nova/glm'])
    expect(refusal(outcome)).toEqual({ code, message })
  })

  it('leaves the model key behind when the request is too long for it', async () => {
    const answers: Answers = { 'nova/glm': { kind: 'context_length' } }
    const { tried, outcome } = await run(answers, { model: 'glm', failover: ['oss'] })
    expect(tried).toEqual(['nova/glm', 'nova/oss'])
    expect(outcome).toMatchObject({ value: 'nova/oss' })
  })

  it('says that the request is too long when no other model is left', async () => {
    const { outcome } = await run({ 'nova/glm': { kind: 'context_length' } }, { model: 'glm' })
    expect(refusal(outcome)).toEqual({
      code: 'context_length_exceeded',
      message: 'This request is longer than the context window of the model.',
      param: 'messages',
    })
  })

  it('says rate limited, with the shortest wait, where nothing else was seen', async () => {
    const answers: Answers = {
      'nova/glm': { kind: 'rate_limited', retryAfterMs: 30_000 },
      'vela/glm': { kind: 'rate_limited', retryAfterMs: 12_000 },
    }
    const { outcome } = await run(answers, { model: 'glm' })
    expect(refusal(outcome)).toEqual({
      code: 'upstream_rate_limit',
      message: 'Every route for this request is rate limited.',
    })
    expect(outcome).toMatchObject({ details: { retryAfter: 12 } })
  })

  it('says unavailable, with a wait a provider gave, where failures differ', async () => {
    const answers: Answers = {
      'nova/glm': { kind: 'rate_limited', retryAfterMs: 7_000 },
      'vela/glm': unavailable,
    }
    const { outcome } = await run(answers, { model: 'glm' })
    expect(refusal(outcome)).toEqual({
      code: 'routes_unavailable',
      message: 'No route for this request is available.',
    })
    expect(outcome).toMatchObject({ details: { retryAfter: 7 } })
  })

  it('answers bad gateway where the only route failed for no reason we know', async () => {
    const { outcome } = await run({ 'solo/lone': { kind: 'unclassified' } }, { model: 'lone' })
    expect(refusal(outcome)).toEqual({
      code: 'bad_gateway',
      message: 'The provider failed to answer this request.',
    })
  })

  it("treats the operator's own faults at a provider as that route being unavailable", async () => {
    const { outcome } = await run(
      { 'solo/lone': { kind: 'unauthorized_upstream', status: 401 } },
      { model: 'lone' },
    )
    expect(refusal(outcome).code).toBe('routes_unavailable')
  })

  it('throws the reason of the budget once it is used up, before another route is asked', async () => {
    const budget = new AbortController()
    budget.abort(new ApiError('upstream_timeout', 'out of time'))
    const { outcome, tried } = await run({}, { model: 'glm', budget: budget.signal })
    expect(tried).toEqual([])
    expect(refusal(outcome)).toEqual({ code: 'upstream_timeout', message: 'out of time' })
  })

  it('lets what is no failure of a route through', async () => {
    const { outcome } = await run(
      {},
      { model: 'glm', budget: AbortSignal.abort(new TypeError('a fault of our own')) },
    )
    expect(outcome).toBeInstanceOf(TypeError)
  })

  it('logs kinds, counts and times of attempts and nothing else', async () => {
    const { logged } = await run({ 'nova/glm': unavailable }, { model: 'glm' })
    const shared = { request_id: 'r' }
    expect(logged).toEqual([
      { ...shared, route: 'nova/glm', attempt: 1, failure: 'unavailable', status: 503 },
      { ...shared, route: 'vela/glm', attempt: 2, failover: false, first_delta_ms: 0 },
    ])
  })
})
