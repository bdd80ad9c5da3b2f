import { describe, expect, it } from 'vitest'
import type { RouteConfig } from '../../../src/protocol/config.ts'
import {
  attestationOf,
  combineCaching,
  combineReasoning,
  commonPrecision,
  reasoningOf,
} from '../../../src/worker/models/traits.ts'
import {
  reasoningOf as efforts,
  routerConfig,
  type RouteExtras,
} from '../../support/router-config.ts'

/** Routes of one model, one for each set of extras. */
function routes(...extras: readonly RouteExtras[]): readonly RouteConfig[] {
  return routerConfig(Object.fromEntries(extras.map((extra, n) => [`p${n}/m`, extra]))).routes
}

describe('commonPrecision', () => {
  it.each([
    ['all agree', ['fp8', 'fp8'], 'fp8'],
    ['one is other', ['fp8', 'bf16'], undefined],
    ['one does not say', ['fp8', undefined], undefined],
    ['none says', [undefined, undefined], undefined],
  ])('where %s', (_, precisions, expected) => {
    expect(commonPrecision(routes(...precisions.map((precision) => ({ precision }))))).toBe(
      expected,
    )
  })
})

describe('reasoning', () => {
  it('of a route is its ladder in order and its default', () => {
    const [route] = routes({ reasoning: efforts('high', 'off', 'minimal') })
    expect(route && reasoningOf(route)).toEqual({
      supported_efforts: ['off', 'minimal', 'high'],
      default_effort: 'high',
    })
  })

  it('of a route without it is nothing', () => {
    const [route] = routes({})
    expect(route && reasoningOf(route)).toBeUndefined()
    expect(combineReasoning(routes({}, {}))).toBeUndefined()
  })

  it('of several is the union and the intersection in ladder order', () => {
    const several = routes(
      { reasoning: efforts('medium', 'max', 'off') },
      { reasoning: efforts('medium', 'low', 'off') },
    )
    expect(combineReasoning(several)).toEqual({
      supported_efforts: ['off', 'low', 'medium', 'max'],
      guaranteed_efforts: ['off', 'medium'],
      default_effort: 'medium',
    })
  })

  it('of several has no default where they disagree', () => {
    const several = routes({ reasoning: efforts('low') }, { reasoning: efforts('high') })
    expect(combineReasoning(several)).toEqual({
      supported_efforts: ['low', 'high'],
      guaranteed_efforts: [],
    })
  })

  it('of several guarantees nothing and has no default where one has none', () => {
    expect(combineReasoning(routes({ reasoning: efforts('low') }, {}))).toEqual({
      supported_efforts: ['low'],
      guaranteed_efforts: [],
    })
  })
})

describe('combineCaching', () => {
  const yes = { supported: true, verified: true, default_enabled: true, billing_mode: 'aggregate' }

  it.each<[string, readonly unknown[], unknown]>([
    ['all advertise the same', [yes, yes], yes],
    ['none advertises', [undefined, undefined], undefined],
    [
      'one does not advertise',
      [yes, undefined],
      { supported: false, verified: false, default_enabled: false },
    ],
    ['one is not verified', [yes, { ...yes, verified: false }], { ...yes, verified: false }],
    ['one does not say', [{ supported: true }], { supported: true, verified: false }],
    [
      'billing modes differ',
      [yes, { ...yes, billing_mode: 'split' }],
      { supported: true, verified: true, default_enabled: true },
    ],
  ])('where %s', (_, caching, expected) => {
    const several = routes(...caching.map((prompt_caching) => ({ prompt_caching })))
    expect(combineCaching(several)).toEqual(expected)
  })
})

describe('attestation', () => {
  it.each([
    [['envelope'], true, ['envelope']],
    [['envelope', 'dstack', 'envelope'], true, ['envelope', 'dstack']],
    [['envelope', 'none'], false, ['envelope']],
    [['none'], false, []],
  ] as const)('of routes with %j', (adapters, attested, kinds) => {
    expect(attestationOf(adapters)).toEqual({ attested, adapters: kinds })
  })
})
