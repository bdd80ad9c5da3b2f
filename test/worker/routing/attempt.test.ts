import { describe, expect, it } from 'vitest'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { SilentFailure, type Failure } from '../../../src/worker/provider/failure.ts'
import { newHealth, runAttempts as run, type Answers, type Run } from '../../support/attempt-run.ts'
import { refusalOf } from '../../support/refusal.ts'

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

  it('gives the last route that the plan or the attempt budget has all the time that is left', async () => {
    const answers = { 'nova/glm': unavailable, 'vela/glm': unavailable, 'nova/oss': unavailable }
    const criteria = { model: 'glm', failover: ['oss'] }
    const half = 90_000
    expect((await run(answers, criteria)).limits).toEqual([half, half, undefined])
    expect((await run(answers, { ...criteria, maxAttempts: 2 })).limits).toEqual([half, undefined])
    expect((await run({}, { model: 'lone' })).limits).toEqual([undefined])
  })

  it('counts a route as the last where those behind it are too small for the request', async () => {
    const answers: Answers = { 'nova/glm': { kind: 'context_length' }, 'nova/oss': unavailable }
    const criteria = { model: 'nova/glm', failover: ['oss', 'vela/glm'] }
    expect((await run(answers, criteria)).limits).toEqual([90_000, undefined])
  })

  it('gives a silent route up while there is time to ask another, and counts it', async () => {
    const { outcome, limits, health } = await run(
      { 'nova/glm': { kind: 'timeout' } },
      {
        model: 'nova/glm',
        failover: ['oss'],
        budgetMs: 7_000,
        silences: { 'nova/glm': 1e9 },
      },
    )
    expect(outcome).toMatchObject({ value: 'nova/oss', attempt: { failover: true } })
    expect(limits).toEqual([5_000, undefined])
    expect(health).toContainEqual(expect.objectContaining({ route: 'nova/glm', errors: 1 }))
  })

  it('lets a slow answer win where there is no other route', async () => {
    const { outcome } = await run(
      {},
      { model: 'lone', budgetMs: 180_000, silences: { 'solo/lone': 179_000 } },
    )
    expect(outcome).toMatchObject({ value: 'solo/lone' })
  })

  it('holds a silence against no route where the caller was in a hurry', async () => {
    const { outcome, health } = await run(
      { 'nova/glm': { kind: 'timeout' } },
      {
        model: 'nova/glm',
        failover: ['oss'],
        budgetMs: 2_000,
        silences: { 'nova/glm': 1e9 },
      },
    )
    expect(outcome).toMatchObject({ value: 'nova/oss' })
    expect(health).not.toContainEqual(expect.objectContaining({ route: 'nova/glm', errors: 1 }))
  })

  it('counts a route that was silent until the time was over', async () => {
    const hung = { model: 'lone', budgetMs: 20_000, silences: { 'solo/lone': 1e9 } }
    const { outcome, health } = await run({ 'solo/lone': { kind: 'timeout' } }, hung)
    expect(refusal(outcome).code).toBe('upstream_timeout')
    expect(health).toMatchObject([{ route: 'solo/lone', errors: 1, last_failure: 'timeout' }])
  })

  describe('where five requests of one customer ran out of time', () => {
    const silent: Failure = { kind: 'timeout' }

    async function afterFive(failure: Failure) {
      const health = newHealth()
      const request = { model: 'nova/glm', failover: ['oss'], health }
      let last = await run({ 'nova/glm': failure }, request)
      for (let count = 1; count < 5; count++) last = await run({ 'nova/glm': failure }, request)
      return { request, restsFor: last.restsFor }
    }

    it('the route rests for that customer, and for all once a second one has waited in vain', async () => {
      const { request, restsFor } = await afterFive(silent)
      expect(['acme', 'other'].map(restsFor)).toEqual([true, false])
      await run({ 'nova/glm': silent }, { ...request, customer: 'other' })
      expect(restsFor('third')).toBe(true)
    })

    it('the route rests for all where no connection was made', async () => {
      const { restsFor } = await afterFive({ kind: 'timeout', unanswered: true })
      expect(['acme', 'other'].map(restsFor)).toEqual([true, true])
    })
  })

  it('holds nothing against a route whose client has left', async () => {
    const left: Run = { model: 'lone', budgetMs: 20_000, silences: { 'solo/lone': 1e9 } }
    const { health } = await run({}, { ...left, cause: 'client' })
    expect(health).toEqual([])
  })

  it('holds nothing against a route whose call the router itself could not make, and asks the next', async () => {
    const own: Failure = { kind: 'unavailable', unanswered: true, isOwn: true }
    const { outcome, tried, health } = await run({ 'nova/glm': own }, { model: 'glm' })
    expect(outcome).toMatchObject({ value: 'vela/glm' })
    expect(tried).toEqual(['nova/glm', 'vela/glm'])
    expect(health.map(({ route }) => route)).toEqual(['vela/glm'])
  })

  describe('where a call broke off without a word', () => {
    const broken = new SilentFailure({ kind: 'unavailable', unanswered: false })
    const error = new LinkUnavailable('the enclave daemon cannot be reached')
    const lost = async () => ({ error, failure: undefined })

    it('holds nothing against its route when the thread that carried it is lost, and asks no other', async () => {
      const { outcome, tried, health } = await run(
        { 'nova/glm': broken },
        { model: 'glm', pinned: 'nova', lostThread: lost },
      )
      expect(outcome).toBeInstanceOf(LinkUnavailable)
      expect(tried).toEqual(['nova/glm'])
      expect(health).toEqual([])
    })

    it('counts it when that thread lives, and asks the next', async () => {
      const { outcome, health } = await run(
        { 'nova/glm': broken },
        { model: 'glm', pinned: 'nova' },
      )
      expect(outcome).toMatchObject({ value: 'vela/glm' })
      expect(health).toContainEqual(expect.objectContaining({ route: 'nova/glm', errors: 1 }))
    })

    it('asks nothing of the daemon for a call that went past it, or that was answered', async () => {
      const past = await run(
        { 'vela/glm': broken },
        { model: 'vela/glm', pinned: 'nova', lostThread: lost },
      )
      expect(refusal(past.outcome).code).toBe('routes_unavailable')
      expect(past.health).toContainEqual(expect.objectContaining({ route: 'vela/glm', errors: 1 }))
      const answered = await run(
        { 'nova/glm': unavailable },
        { model: 'glm', pinned: 'nova', lostThread: lost },
      )
      expect(answered.outcome).toMatchObject({ value: 'vela/glm' })
    })

    it('holds a silence until the end against no route when the thread is lost', async () => {
      const asked: string[] = []
      const lostThread = () => {
        asked.push('asked')
        return lost()
      }
      const silences = { 'nova/glm': 1e9 }
      const hung = { model: 'nova/glm', budgetMs: 20_000, silences, pinned: 'nova', lostThread }
      const { outcome, health } = await run({}, hung)
      expect(refusal(outcome).code).toBe('upstream_timeout')
      expect(asked).toEqual(['asked'])
      expect(health).toEqual([])
    })

    it('counts a silence until the end once the thread is known to live, although the client has its answer by then', async () => {
      const lostThread = () =>
        new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 1))
      const silences = { 'nova/glm': 1e9 }
      const hung = { model: 'nova/glm', budgetMs: 20_000, silences, pinned: 'nova', lostThread }
      const { outcome, health } = await run({}, hung)
      expect(refusal(outcome).code).toBe('upstream_timeout')
      expect(health).toContainEqual(expect.objectContaining({ route: 'nova/glm', errors: 1 }))
    })

    it('asks nothing of the daemon when the client has disconnected', async () => {
      const asked: string[] = []
      const lostThread = async () => {
        asked.push('asked')
        return undefined
      }
      const silences = { 'nova/glm': 1e9 }
      const left = { model: 'nova/glm', budgetMs: 20_000, silences, pinned: 'nova', lostThread }
      await run({}, { ...left, cause: 'client' })
      expect(asked).toEqual([])
    })

    const blame = { kind: 'unavailable', retryAfterMs: 60_000 } as const
    const toBlame = async () => ({ error, failure: blame })

    it.each([
      ['breaks off', broken],
      ['never begins', error],
    ])(
      'asks the next where the thread was lost and the route is to blame, which rests (its answer %s)',
      async (_, answer) => {
        const back: string[] = []
        const daemonBack = async () => void back.push('back')
        const { outcome, tried, health, open } = await run(
          { 'nova/glm': answer },
          { model: 'glm', pinned: 'nova', lostThread: toBlame, daemonBack },
        )
        expect(outcome).toMatchObject({ value: 'vela/glm' })
        expect(tried).toEqual(['nova/glm', 'vela/glm'])
        expect(back).toEqual(['back'])
        expect(health).toContainEqual(
          expect.objectContaining({ route: 'nova/glm', errors: 1, state: 'open' }),
        )
        // The one that served is still to be relayed.
        expect(open).toBe(1)
      },
    )

    it('fails where the daemon does not come back for the next', async () => {
      const { outcome, tried } = await run(
        { 'nova/glm': broken },
        {
          model: 'glm',
          pinned: 'nova',
          lostThread: toBlame,
          daemonBack: () => Promise.reject(error),
        },
      )
      expect(outcome).toBe(error)
      expect(tried).toEqual(['nova/glm'])
    })

    it('does not wait for the daemon where no other route is left', async () => {
      const daemonBack = () => Promise.reject(new Error('not asked'))
      const { outcome, open } = await run(
        { 'solo/lone': broken },
        { model: 'lone', pinned: 'solo', lostThread: toBlame, daemonBack },
      )
      expect(refusal(outcome).code).toBe('routes_unavailable')
      expect(open).toBe(0)
    })

    it('passes on an unavailable daemon whose thread lives', async () => {
      const { outcome, tried, health } = await run(
        { 'nova/glm': error },
        { model: 'glm', pinned: 'nova' },
      )
      expect(outcome).toBe(error)
      expect(tried).toEqual(['nova/glm'])
      expect(health).toEqual([])
    })
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
    const budget = new OwnSignal()
    budget.abort(new ApiError('upstream_timeout', 'out of time'))
    const { outcome, tried } = await run({}, { model: 'glm', budget })
    expect(tried).toEqual([])
    expect(refusal(outcome)).toEqual({ code: 'upstream_timeout', message: 'out of time' })
  })

  it('lets what is no failure of a route through', async () => {
    const budget = new OwnSignal()
    budget.abort(new TypeError('a fault of our own'))
    const { outcome } = await run({}, { model: 'glm', budget })
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
