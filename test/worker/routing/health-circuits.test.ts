import { describe, expect, it, vi } from 'vitest'
import { createRouteHealth } from '../../../src/worker/routing/health.ts'
import { catalogueOf } from '../../support/router-config.ts'

const BREAKER = { errors: 3, window_ms: 1_000, cooldown_ms: 2_000 }
const START = 1_800_000_000_000

const { routes: ROUTES } = catalogueOf({ 'a/m': {}, 'eu/b/m': {}, 'c/m': {} })

/** A health whose clock starts at 0, and what happens to its first route. */
function watch() {
  const health = createRouteHealth(BREAKER, 'order')
  const [route] = ROUTES
  if (route === undefined) throw new Error('no route')
  return {
    order: (at: number, customer = 'acme') =>
      health
        .openCircuitsLast(
          ROUTES.map((one) => ({ route: one })),
          START + at,
          customer,
        )
        .map(({ route: { provider } }) => provider.name)
        .join(''),
    started: (at: number) => health.started(route, START + at, 'acme'),
    succeeded: (at: number, customer = 'acme') =>
      health.succeeded(route, START + at, undefined, customer),
    failed: (at: number, customer = 'acme') =>
      health.failed(route, START + at, { kind: 'unavailable' }, customer),
    /** A failure that the content of the request may have caused. */
    upset: (at: number, customer = 'acme') =>
      health.failed(route, START + at, { kind: 'unclassified', mayBeContent: true }, customer),
    status: (at: number) => health.snapshot(START + at, [route])[0],
  }
}

describe('failures that the content of a request may cause', () => {
  it('put the route to rest for the customer whose requests failed, and for nobody else', () => {
    const { upset, order, status } = watch()
    for (const at of [0, 1, 2]) upset(at)
    expect([order(3), order(3, 'other')]).toEqual(['bca', 'abc'])
    expect(status(3)).toMatchObject({ state: 'open', errors: 3 })
    expect([order(2_001), order(2_002), order(2_002)]).toEqual(['bca', 'abc', 'bca'])
  })

  it('of the only customer rest the route as others do: one probe at a time, closed once it succeeds', () => {
    const { upset, order, started, succeeded, status } = watch()
    for (const at of [0, 0, 0]) upset(at)
    expect([order(1_999), order(2_000), order(2_000)]).toEqual(['bca', 'abc', 'bca'])
    started(2_000)
    upset(2_100)
    expect([order(2_100), order(4_099), order(4_100)]).toEqual(['bca', 'bca', 'abc'])
    succeeded(4_200)
    expect(status(4_200)).toMatchObject({ state: 'closed', errors: 0, retry_at: null })
    expect([order(4_200), order(4_200)]).toEqual(['abc', 'abc'])
  })

  it('count against the route once two customers have some', () => {
    const { upset, order } = watch()
    upset(0)
    upset(1)
    upset(2, 'other')
    expect(order(3, 'third')).toBe('bca')
  })

  it('do so only where both have them within the window', () => {
    const { upset, order } = watch()
    upset(0, 'other')
    for (const at of [1_000, 1_001, 1_002]) upset(at)
    expect([order(1_003), order(1_003, 'other')]).toEqual(['bca', 'abc'])
  })

  it('neither hide nor strengthen those that no content causes', () => {
    const { upset, failed, order } = watch()
    for (let at = 0; at < 20; at++) upset(at)
    for (const at of [20, 21]) failed(at)
    for (let at = 22; at < 40; at++) upset(at)
    expect(order(40, 'other')).toBe('abc')
    failed(41)
    expect(order(42, 'other')).toBe('bca')
  })

  it('fail a probe for their customer alone: the next one is that of another', () => {
    const { upset, order, succeeded } = watch()
    for (const customer of ['acme', 'other', 'third']) upset(0, customer)
    expect(order(1_999, 'fourth')).toBe('bca')
    expect(order(2_000)).toBe('abc')
    upset(2_100)
    expect(order(2_100)).toBe('bca')
    expect(order(2_100, 'fourth')).toBe('abc')
    succeeded(2_200, 'fourth')
    expect(order(2_200, 'fifth')).toBe('abc')
    expect(order(4_099)).toBe('bca')
  })

  it('are forgotten with their customer after the rest and as long again', () => {
    const { upset, order, status } = watch()
    for (const at of [0, 0, 0]) upset(at)
    expect(status(3_999)?.state).toBe('half_open')
    expect(status(4_000)).toMatchObject({ state: 'closed', errors: 0, retry_at: null })
    expect([order(4_000), order(4_000)]).toEqual(['abc', 'abc'])
  })

  it('of any number of customers are kept for the latest hundred', () => {
    const { upset, succeeded, order } = watch()
    for (const at of [0, 0, 0]) upset(at, 'first')
    expect(order(1_999, 'first')).toBe('bca')
    for (let index = 0; index < 100; index++) upset(1_999, `customer ${index}`)
    order(3_999, 'probe')
    succeeded(3_999, 'probe')
    expect(order(3_999, 'first')).toBe('abc')
  })
})

describe('customers without failures', () => {
  it('leave no state behind, whatever their number', () => {
    const { order, started, succeeded, upset } = watch()
    succeeded(0)
    const set = vi.spyOn(Map.prototype, 'set')
    try {
      for (let index = 0; index < 200; index++) {
        order(index, `customer ${index}`)
        started(index)
        succeeded(index, `customer ${index}`)
      }
      expect(set.mock.calls).toEqual([])
      upset(200)
      expect(set.mock.calls.map(([key]) => key)).toContain('acme')
    } finally {
      set.mockRestore()
    }
  })
})
