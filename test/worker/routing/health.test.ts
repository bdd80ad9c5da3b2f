import { describe, expect, it } from 'vitest'
import type { Route } from '../../../src/worker/provider/route.ts'
import type { RouteFailure } from '../../../src/worker/routing/health-circuit.ts'
import { createRouteHealth, type RouteHealth } from '../../../src/worker/routing/health.ts'
import { catalogueOf } from '../../support/router-config.ts'

const BREAKER = { errors: 3, window_ms: 1_000, cooldown_ms: 2_000 }
const START = 1_800_000_000_000

const { routes: ROUTES } = catalogueOf({ 'a/m': {}, 'eu/b/m': {}, 'c/m': {} })

function named(name: string): Route {
  const found = ROUTES.find(({ provider }) => provider.name === name)
  if (!found) throw new Error(`no route ${name}`)
  return found
}

/** The routes as requests try them. */
function orderOf(
  health: RouteHealth,
  routes: readonly Route[],
  now: number,
  customer: string,
): readonly Route[] {
  const attempts = health.prefer(routes, now).map((route) => ({ route }))
  return health.openCircuitsLast(attempts, now, customer).map(({ route }) => route)
}

/** A health whose routes are named by one letter and whose clock starts at 0. */
function watch(selection: 'order' | 'price' | 'latency' = 'order') {
  const health = createRouteHealth(BREAKER, selection)
  return {
    health,
    order: (at: number, names = 'abc', customer = 'acme') =>
      orderOf(health, names.split('').map(named), START + at, customer)
        .map(({ provider }) => provider.name)
        .join(''),
    started: (name: string, at: number) => health.started(named(name), START + at, 'acme'),
    succeeded: (name: string, at: number, ms?: number, customer = 'acme') =>
      health.succeeded(named(name), START + at, ms, customer),
    failed: (name: string, at: number, failure: Partial<RouteFailure> = {}, customer = 'acme') =>
      health.failed(named(name), START + at, { kind: 'unavailable', ...failure }, customer),
    status: (name: string, at: number) => health.snapshot(START + at, [named(name)])[0],
  }
}

/** Route a at rest from 0 to 2000. */
function watchResting() {
  const watched = watch()
  for (const at of [0, 0, 0]) watched.failed('a', at)
  return watched
}

describe('errors', () => {
  it('leave a route in its place until there are enough of them', () => {
    const { failed, order, status } = watch()
    failed('a', 0)
    failed('a', 10)
    expect(order(10)).toBe('abc')
    failed('a', 20)
    expect(order(20)).toBe('bca')
    expect(status('a', 20)).toMatchObject({ state: 'open', errors: 3 })
  })

  it('count only while they are within the window', () => {
    const { failed, order, status } = watch()
    for (const at of [0, 600, 1_100]) failed('a', at)
    expect(order(1_100)).toBe('abc')
    expect(status('a', 1_100)?.errors).toBe(2)
    failed('a', 1_599)
    expect(order(1_599)).toBe('bca')
  })

  it('count although other requests succeed', () => {
    const { failed, succeeded, order } = watch()
    for (const at of [0, 1, 2]) {
      failed('a', at)
      succeeded('a', at, 10)
    }
    expect(order(3)).toBe('bca')
  })

  it.each([
    'unavailable',
    'timeout',
    'unclassified',
    'rate_limited',
    'unauthorized_upstream',
  ] as const)('of kind %s count', (kind) => {
    const { failed, order } = watch()
    for (const at of [0, 1, 2]) failed('a', at, { kind })
    expect(order(3)).toBe('bca')
  })

  it.each([
    'rejected',
    'context_length',
    'content_policy',
    'file_rejected',
    'file_too_large',
    'file_type_rejected',
  ] as const)('of kind %s say nothing against the route', (kind) => {
    const { failed, order, status } = watch()
    for (let i = 0; i < 10; i++) failed('a', i, { kind })
    expect(order(10)).toBe('abc')
    expect(status('a', 10)).toMatchObject({ state: 'closed', errors: 0 })
  })
})

describe('a rest', () => {
  it('lasts the cooldown', () => {
    const { status } = watchResting()
    expect(status('a', 1_999)?.state).toBe('open')
    expect(status('a', 2_000)?.state).toBe('half_open')
  })

  it.each([
    ['as long as the provider asked', 5_000, 5_000],
    ['no longer than it asked', 10, 10],
    ['a minute at most', 86_400_000, 60_000],
  ])('that a rate limit asks for lasts %s', (_, retryAfterMs, rest) => {
    const { failed, status } = watch()
    failed('a', 0, { kind: 'rate_limited', retryAfterMs })
    expect(status('a', rest - 1)?.state).toBe('open')
    expect(status('a', rest)?.state).toBe('closed')
  })

  it.each(['rate_limited', 'unauthorized_upstream'] as const)(
    'does not begin with one failure of kind %s that asks for none',
    (kind) => {
      const { failed, order, status } = watch()
      failed('a', 0, { kind })
      failed('a', 1, { kind, retryAfterMs: -5 })
      expect(order(1)).toBe('abc')
      expect(status('a', 1)).toMatchObject({ state: 'closed', errors: 2, retry_at: null })
    },
  )

  it('that the provider requested ends for all requests at once, one for errors needs a probe', () => {
    const { failed, order } = watch()
    failed('a', 0, { kind: 'rate_limited', retryAfterMs: 500 })
    expect([order(499), order(500), order(500)]).toEqual(['bca', 'abc', 'abc'])
    for (const at of [600, 600]) failed('a', at)
    expect([order(2_599), order(2_600), order(2_600)]).toEqual(['bca', 'abc', 'bca'])
  })

  it('begins with any Retry-After, for just as long, without being a verdict', () => {
    const { failed, order, status } = watch()
    failed('a', 0, { retryAfterMs: 300 })
    expect(order(299)).toBe('bca')
    expect(status('a', 300)?.state).toBe('closed')
  })

  it('is prolonged by a Retry-After that comes late, and by nothing else', () => {
    const { failed, status } = watchResting()
    failed('a', 1_000)
    expect(status('a', 2_000)?.state).toBe('half_open')
    failed('a', 1_500, { retryAfterMs: 1_000 })
    expect(status('a', 2_499)?.state).toBe('open')
    expect(status('a', 2_500)?.state).toBe('half_open')
  })

  it('is not ended by an answer to a request from before it', () => {
    const { succeeded, status } = watchResting()
    succeeded('a', 100, 50)
    expect(status('a', 101)?.state).toBe('open')
  })

  it('ends when the clock is set back', () => {
    const { status, succeeded } = watchResting()
    expect(status('a', -3_600_000)?.state).toBe('half_open')
    succeeded('a', -3_600_000)
    expect(status('a', -3_600_000)?.state).toBe('closed')
  })
})

describe('the order', () => {
  it('keeps every route, the one back soonest first among those resting', () => {
    const { failed, order } = watch()
    failed('a', 0, { kind: 'rate_limited', retryAfterMs: 9_000 })
    failed('b', 0, { kind: 'rate_limited', retryAfterMs: 7_000 })
    failed('c', 0, { kind: 'rate_limited', retryAfterMs: 8_000 })
    expect(order(1)).toBe('bca')
  })

  it('never removes the last candidate', () => {
    const { order } = watchResting()
    expect(order(1, 'a')).toBe('a')
    expect(order(1, 'ab')).toBe('ba')
  })

  it('answers the very same list where all is well', () => {
    const { health } = watch()
    const attempts = ROUTES.map((route) => ({ route }))
    expect(health.prefer(ROUTES, START)).toBe(ROUTES)
    expect(health.openCircuitsLast(attempts, START, 'acme')).toBe(attempts)
  })
})

describe('the attempts of a request with other models', () => {
  const attemptsOf = (names: string) =>
    names.split('').map((name, entry) => ({ route: named(name), entry }))
  const entriesOf = (attempts: readonly { readonly entry: number }[]) =>
    attempts.map(({ entry }) => entry).join('')

  it('leave a resting primary to the end, and none out', () => {
    const { health } = watchResting()
    expect(entriesOf(health.openCircuitsLast(attemptsOf('abc'), START + 1, 'acme'))).toBe('120')
    expect(entriesOf(health.openCircuitsLast(attemptsOf('a'), START + 1, 'acme'))).toBe('0')
  })

  it('probe it once its rest is over, one request at a time', () => {
    const { health } = watchResting()
    expect(entriesOf(health.openCircuitsLast(attemptsOf('abc'), START + 2_000, 'acme'))).toBe('012')
    expect(entriesOf(health.openCircuitsLast(attemptsOf('abc'), START + 2_000, 'acme'))).toBe('120')
  })
})

describe('a probe', () => {
  it('is one caller at a time; the others find the route behind the healthy', () => {
    const { order } = watchResting()
    expect(order(2_000)).toBe('abc')
    expect(order(2_000)).toBe('bca')
  })

  it('is forgotten soon where it never began', () => {
    const { order } = watchResting()
    expect(order(2_000)).toBe('abc')
    expect(order(2_999)).toBe('bca')
    expect(order(3_000)).toBe('abc')
  })

  it('that began is waited for as long as a cooldown', () => {
    const { order, started } = watchResting()
    expect(order(2_000)).toBe('abc')
    started('a', 2_100)
    expect(order(4_099)).toBe('bca')
    expect(order(4_100)).toBe('abc')
  })

  it('that succeeds closes the circuit and forgets the errors', () => {
    const { succeeded, order, status, failed } = watchResting()
    succeeded('a', 2_100, 50)
    expect(status('a', 2_100)).toMatchObject({ state: 'closed', errors: 0, retry_at: null })
    failed('a', 2_101)
    expect(order(2_101)).toBe('abc')
  })

  it('that fails begins another rest at once', () => {
    const { failed, order, status } = watchResting()
    failed('a', 2_100)
    expect(order(2_100)).toBe('bca')
    expect(status('a', 4_099)?.state).toBe('open')
    expect(status('a', 4_100)?.state).toBe('half_open')
  })

  it('that the provider refuses as a request gives its turn to the next caller', () => {
    const { failed, order } = watchResting()
    expect(order(2_000)).toBe('abc')
    failed('a', 2_001, { kind: 'rejected' })
    expect(order(2_001)).toBe('abc')
  })

  it('is not spent on a caller who would try a healthy route first', () => {
    const { order } = watchResting()
    expect(order(2_000, 'bac')).toBe('bca')
    expect(order(2_000, 'abc')).toBe('abc')
  })

  it('is not spent on a caller who has no other route', () => {
    const { order } = watchResting()
    order(2_000, 'a')
    expect(order(2_000, 'abc')).toBe('abc')
  })

  it('goes before routes that are still resting', () => {
    const { failed, order } = watchResting()
    for (const at of [1_000, 1_000, 1_000]) failed('b', at)
    expect(order(2_000, 'ba')).toBe('ab')
  })
})

/** All three known, c the quickest. */
function watchKnown() {
  const watched = watch('latency')
  watched.succeeded('a', 0, 300)
  watched.succeeded('b', 0, 200)
  watched.succeeded('c', 0, 100)
  return watched
}

describe('selection by latency', () => {
  it('puts the quickest first', () => {
    expect(watchKnown().order(1)).toBe('cba')
  })

  it('smooths, so that one slow answer changes little and many change the order', () => {
    const { succeeded, order, status } = watchKnown()
    succeeded('c', 1, 400)
    expect(status('c', 1)?.latency_ms).toBe(160)
    expect(order(2)).toBe('cba')
    for (let at = 2; at < 10; at++) succeeded('c', at, 400)
    expect(order(10)).toBe('bac')
  })

  it('lets one caller at a time try a route of unknown latency first', () => {
    const { succeeded, order } = watch('latency')
    succeeded('c', 0, 100)
    expect(order(1)).toBe('acb')
    expect(order(1)).toBe('bca')
    expect(order(1)).toBe('cab')
    expect(order(5_001)).toBe('acb')
  })

  it('tries a route again that was not measured for long, and starts over', () => {
    const { succeeded, order, status } = watchKnown()
    succeeded('c', 200_000, 100)
    succeeded('b', 200_000, 200)
    expect(order(300_000)).toBe('acb')
    succeeded('a', 300_100, 50)
    expect(status('a', 300_100)?.latency_ms).toBe(50)
    expect(order(300_101)).toBe('acb')
  })

  it('does not probe a route repeatedly whose answers were not timed', () => {
    const { succeeded, order } = watchKnown()
    succeeded('a', 299_000)
    expect(order(299_500)).toBe('cba')
  })

  it('yields to health', () => {
    const { failed, order } = watchKnown()
    for (const at of [1, 1, 1]) failed('c', at)
    expect(order(2)).toBe('bac')
  })

  it('is off under the other selections', () => {
    const { succeeded, order } = watch('price')
    succeeded('a', 0, 900)
    succeeded('b', 0, 1)
    expect(order(1)).toBe('abc')
  })
})

describe('the snapshot', () => {
  it('shows bounded facts of each route', () => {
    const { failed, status, succeeded } = watch()
    succeeded('b', 0, 120.4)
    failed('b', 5, { kind: 'rate_limited', retryAfterMs: 2_000 })
    expect(status('b', 10)).toEqual({
      route: 'b/m',
      model_key: 'm',
      provider: 'b',
      region: 'eu',
      state: 'open',
      errors: 1,
      last_failure: 'rate_limited',
      retry_at: new Date(START + 2_005).toISOString(),
      latency_ms: 120,
    })
  })

  it('shows a route that was never tried as closed', () => {
    expect(watch().status('a', 0)).toEqual({
      route: 'a/m',
      model_key: 'm',
      provider: 'a',
      region: null,
      state: 'closed',
      errors: 0,
      last_failure: null,
      retry_at: null,
      latency_ms: null,
    })
  })

  it('without a list shows the routes that were tried', () => {
    const { health, failed, order } = watch()
    order(0)
    failed('c', 0)
    expect(health.snapshot(START).map(({ route }) => route)).toEqual(['c/m'])
  })
})
