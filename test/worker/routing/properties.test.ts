import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EFFORTS, type Effort } from '../../../src/protocol/effort.ts'
import type { Route } from '../../../src/worker/provider/route.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { buildListing } from '../../../src/worker/models/listing.ts'
import type { Catalogue } from '../../../src/worker/routing/catalogue.ts'
import { createRouteHealth } from '../../../src/worker/routing/health.ts'
import { planChat, type ChatPlan } from '../../../src/worker/routing/plan.ts'
import { resolveSelector } from '../../../src/worker/routing/resolve.ts'
import {
  catalogueOf,
  reasoningOf,
  tokenPrice,
  type RouteExtras,
} from '../../support/router-config.ts'

const KEYS = ['glm', 'oss', 'page'] as const
const PROVIDERS = ['nova', 'orbit', 'lone'] as const
const REGIONS = ['eu', 'us'] as const

/** A provider either has regions or has none, as the configuration demands. */
const routeName = fc
  .tuple(fc.constantFrom(...REGIONS), fc.constantFrom(...PROVIDERS), fc.constantFrom(...KEYS))
  .map(([region, provider, key]) =>
    provider === 'lone' ? `${provider}/${key}` : `${region}/${provider}/${key}`,
  )

const extras: fc.Arbitrary<RouteExtras> = fc.record(
  {
    pricing: fc.option(
      fc
        .tuple(fc.constantFrom('eur', 'usd'), fc.integer({ min: 0, max: 9 }), fc.nat(9))
        .map((price) => tokenPrice(...price)),
      { nil: undefined },
    ),
    reasoning: fc
      .uniqueArray(fc.constantFrom(...EFFORTS), { minLength: 1 })
      .map((efforts) => reasoningOf(...efforts)),
    ocr: fc.boolean(),
  },
  { requiredKeys: [] },
)

const selection = fc.constantFrom('order', 'price', 'latency')

const catalogue = fc
  .tuple(fc.dictionary(routeName, extras, { minKeys: 1, noNullPrototype: true }), selection)
  .map(([routes, chosen]) => catalogueOf(routes, { usd_eur: 0.86, selection: chosen }))

const selector = fc.oneof(
  fc.constantFrom(...KEYS),
  fc.tuple(fc.constantFrom(...REGIONS, ...PROVIDERS), fc.constantFrom(...KEYS)).map(joined),
  routeName,
)

const criteria = fc.record({
  model: selector,
  failover: fc.array(selector, { maxLength: 5 }),
  reasoning: fc.option(fc.constantFrom(...EFFORTS), { nil: undefined }),
})

type Wish = typeof criteria extends fc.Arbitrary<infer W> ? W : never

function joined(names: readonly string[]): string {
  return names.join('/')
}

/** The plan, or undefined where the request is refused in one of the ways a plan may refuse. */
function planOf(
  known: Catalogue,
  asked: Wish,
  order: (routes: readonly Route[]) => readonly Route[] = (routes) => routes,
): ChatPlan | undefined {
  try {
    return planChat(known, asked, { order })
  } catch (error) {
    const allowed = ['model_not_found', 'invalid_request_error', 'route_not_priced']
    if (error instanceof ApiError && allowed.includes(error.code)) return undefined
    throw error
  }
}

function canDo(route: Route, effort: Effort | undefined): boolean {
  return effort === undefined || route.config.reasoning?.efforts[effort] !== undefined
}

describe('whatever the catalogue and the request', () => {
  it('every attempt answers to the selector of its entry, so key and pins are never left', () => {
    fc.assert(
      fc.property(catalogue, criteria, (known, asked) => {
        for (const { route, entry } of planOf(known, asked)?.attempts ?? []) {
          const names = ([asked.model, ...asked.failover][entry] ?? '').split('/')
          const key = names.at(-1)
          expect(route.modelKey).toBe(key)
          for (const pin of names.slice(0, -1)) {
            expect([route.region, route.provider.name]).toContain(pin)
          }
        }
      }),
    )
  })

  it('a plan has at least one attempt, repeats no route and never goes back to an earlier entry', () => {
    fc.assert(
      fc.property(catalogue, criteria, (known, asked) => {
        const plan = planOf(known, asked)
        if (!plan) return
        const { attempts } = plan
        expect(attempts.length).toBeGreaterThan(0)
        expect(new Set(attempts.map(({ route }) => route.id)).size).toBe(attempts.length)
        const entries = attempts.map(({ entry }) => entry)
        expect(entries).toEqual(entries.toSorted((a, b) => a - b))
        for (const { entry, failover } of attempts) expect(failover).toBe(entry > 0)
      }),
    )
  })

  it('every attempt can do what was asked and can be billed, and none that could was left out', () => {
    fc.assert(
      fc.property(catalogue, criteria, (known, asked) => {
        const plan = planOf(known, asked)
        if (!plan || plan.ocr) return
        const able = (route: Route) =>
          canDo(route, asked.reasoning) && route.config.pricing !== undefined && !route.config.ocr
        const wanted = [asked.model, ...asked.failover].flatMap(
          (name) => resolveSelector(known, name)?.routes.filter(able) ?? [],
        )
        expect(new Set(plan.attempts.map(({ route }) => route))).toEqual(new Set(wanted))
        for (const { route, effort } of plan.attempts) {
          expect(effort).toBe(asked.reasoning ?? route.config.reasoning?.default_effort)
        }
      }),
    )
  })

  it('the same request is planned the same', () => {
    fc.assert(
      fc.property(catalogue, criteria, (known, asked) => {
        expect(planOf(known, asked)).toEqual(planOf(known, asked))
      }),
    )
  })

  it('health reorders the attempts of a plan, and adds, removes and changes none', () => {
    fc.assert(
      fc.property(
        catalogue,
        criteria,
        selection,
        fc.infiniteStream(fc.nat(4)),
        (known, asked, chosen, dice) => {
          const health = createRouteHealth({ errors: 2, window_ms: 100, cooldown_ms: 50 }, chosen)
          let now = 1_000
          for (const route of [...known.routes, ...known.routes]) {
            const roll = dice.next().value ?? 0
            now += 10
            const customer = roll % 2 === 0 ? 'acme' : 'other'
            if (roll > 2)
              health.failed(route, now, { kind: 'unavailable', mayBeContent: roll > 3 }, customer)
            else if (roll === 2)
              health.failed(route, now, { kind: 'rate_limited', retryAfterMs: 70 }, customer)
            else if (roll === 1) health.succeeded(route, now, now % 37, customer)
          }
          const plain = planOf(known, asked)?.attempts
          const preferred = planOf(known, asked, (routes) => health.prefer(routes, now))?.attempts
          const ordered = health.openCircuitsLast(preferred ?? [], now, 'acme')
          expect(new Set(ordered)).toEqual(new Set(plain))
        },
      ),
    )
  })

  it('every entry resolves by its id to itself, and by its full name where it is concrete', () => {
    fc.assert(
      fc.property(catalogue, (known) => {
        const { models } = known.derived(buildListing)
        expect(new Set(known.entries.map(({ canonical }) => canonical)).size).toBe(models.length)
        for (const entry of known.entries) {
          expect(resolveSelector(known, entry.canonical)).toBe(entry)
        }
        for (const route of known.routes) {
          const { id, region, provider, modelKey } = route
          const regions = region === undefined ? [] : [region]
          const full = resolveSelector(known, joined([...regions, provider.name, modelKey]))
          expect(full).toMatchObject({ canonical: id, routes: [route] })
          for (const scope of [[], regions, [provider.name]]) {
            const reached = resolveSelector(known, joined([...scope, modelKey]))?.routes
            expect(reached).toContain(route)
          }
        }
      }),
    )
  })
})
