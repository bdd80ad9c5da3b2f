import { describe, expect, it } from 'vitest'
import { checkConfig } from '../../../src/protocol/config-rules.ts'
import { compileCatalogue, type Carried } from '../../../src/worker/routing/catalogue.ts'
import { resolveSelector } from '../../../src/worker/routing/resolve.ts'
import { catalogueOf, routerConfig, tokenPrice, unitPrice } from '../../support/router-config.ts'
import { cpuMs } from '../../support/cpu-time.ts'

/** `nova` runs glm in two regions, `orbit` in one, `lone` in none. */
const ROUTES = {
  'eu/nova/glm': {},
  'us/nova/glm': {},
  'eu/orbit/glm': {},
  'lone/glm': {},
  'eu/nova/oss': {},
}

describe('resolveSelector', () => {
  const catalogue = catalogueOf(ROUTES)

  it.each([
    ['glm', 'logical', 'glm', ['eu/nova/glm', 'us/nova/glm', 'orbit/glm', 'lone/glm']],
    ['eu/glm', 'region', 'eu/glm', ['eu/nova/glm', 'orbit/glm']],
    ['us/glm', 'region', 'us/glm', ['us/nova/glm']],
    ['nova/glm', 'provider', 'nova/glm', ['eu/nova/glm', 'us/nova/glm']],
    ['orbit/glm', 'concrete', 'orbit/glm', ['orbit/glm']],
    ['eu/orbit/glm', 'concrete', 'orbit/glm', ['orbit/glm']],
    ['lone/glm', 'concrete', 'lone/glm', ['lone/glm']],
    ['us/nova/glm', 'concrete', 'us/nova/glm', ['us/nova/glm']],
    ['oss', 'logical', 'oss', ['nova/oss']],
    ['eu/nova/oss', 'concrete', 'nova/oss', ['nova/oss']],
  ])('takes %s as a %s selector', (selector, kind, canonical, ids) => {
    const found = resolveSelector(catalogue, selector)
    expect(found).toMatchObject({ kind, canonical })
    expect(found?.routes.map((route) => route.id)).toEqual(ids)
  })

  it.each([
    ['an unknown key', 'gpt'],
    ['a provider without the model', 'orbit/oss'],
    ['a region without the model', 'us/oss'],
    ['a pair that does not exist', 'us/orbit/glm'],
    ['provider and region in the wrong order', 'nova/eu/glm'],
    ['a region of a provider that has none', 'eu/lone/glm'],
    ['a provider alone', 'nova'],
    ['another case', 'GLM'],
    ['auto', 'auto'],
    ['a member of every object', 'constructor'],
    ['nothing', ''],
    ['a trailing slash', 'glm/'],
  ])('knows nothing of %s', (_, selector) => {
    expect(resolveSelector(catalogue, selector)).toBeUndefined()
  })

  it('gives region and provider to the entries that have them', () => {
    expect(resolveSelector(catalogue, 'eu/orbit/glm')).toMatchObject({
      region: 'eu',
      provider: 'orbit',
    })
    expect(resolveSelector(catalogue, 'nova/glm')).toMatchObject({
      region: undefined,
      provider: 'nova',
    })
  })
})

describe('compileCatalogue', () => {
  it('gives routes their provider with its key and a base address without trailing slashes', () => {
    const keys = { nova: 'k1', other: 'k2' }
    const catalogue = compileCatalogue(routerConfig({ 'nova/glm': {} }), keys, 'attested')
    expect(catalogue.routes[0]?.provider).toEqual({
      name: 'nova',
      baseUrl: 'https://nova.example/v1',
      apiKey: 'k1',
      adapter: 'none',
      isCarried: false,
    })
  })

  it('gives a base address of other characters than ASCII in the form that a header can carry', () => {
    const config = routerConfig({ 'nova/glm': {} })
    const { nova } = config.providers
    if (nova === undefined) throw new Error('no such provider')
    const providers = { nova: { ...nova, base_url: 'https://bücher.example/v1/' } }
    const catalogue = compileCatalogue({ ...config, providers }, {}, 'all')
    expect(catalogue.routes[0]?.provider.baseUrl).toBe('https://xn--bcher-kva.example/v1')
  })

  it('has the daemon carry calls of attested providers, and all of them where it carries all', () => {
    const config = routerConfig({ 'nova/glm': {}, 'vega/glm': {} })
    const { nova, vega } = config.providers
    if (nova === undefined || vega === undefined) throw new Error('no such provider')
    const attestation = { adapter: 'dstack', allowed_compose_hashes: ['ab'.repeat(32)] }
    const check = checkConfig({ ...config, providers: { nova, vega: { ...vega, attestation } } })
    if (!check.ok) throw new Error(JSON.stringify(check.problems))
    const carriedBy = (carried: Carried) =>
      compileCatalogue(check.config, {}, carried).routes.map(({ provider }) => provider.isCarried)
    expect([carriedBy('attested'), carriedBy('all')]).toEqual([
      [false, true],
      [true, true],
    ])
  })

  it('takes no API key from what every object inherits', () => {
    const config = routerConfig({ 'constructor/glm': {} })
    expect(compileCatalogue(config, {}, 'attested').routes[0]?.provider.apiKey).toBeUndefined()
  })

  it('resolves the approved selectors of auto in order', () => {
    const catalogue = catalogueOf(ROUTES, { auto: ['eu/nova/oss', 'glm'] })
    expect(catalogue.auto?.map(({ canonical }) => canonical)).toEqual(['nova/oss', 'glm'])
    expect(catalogueOf(ROUTES).auto).toBeUndefined()
  })

  it('names the path of a selector or provider that leads nowhere', () => {
    const config = routerConfig(ROUTES)
    const { service, providers } = config
    const lost = { ...config, service: { ...service, auto: ['glm', 'gone'] } }
    expect(() => compileCatalogue(lost, {}, 'attested')).toThrow(
      'service.auto[1]: no route answers this selector',
    )
    const { nova: _, ...others } = providers
    const without = { ...config, providers: others }
    expect(() => compileCatalogue(without, {}, 'attested')).toThrow(
      'routes[0].provider: no such provider',
    )
  })

  it('builds a derived value once', () => {
    const catalogue = catalogueOf(ROUTES)
    let built = 0
    const build = () => ({ built: ++built })
    expect(catalogue.derived(build)).toBe(catalogue.derived(build))
    expect(built).toBe(1)
  })

  it('compiles and resolves ten thousand routes quickly', () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `r${n % 4}/p${n % 20}/m${n % 500}-${n}`)
    const config = routerConfig(Object.fromEntries(names.map((name) => [name, {}])))
    const before = cpuMs()
    const catalogue = compileCatalogue(config, {}, 'attested')
    const found = names.filter((name) => resolveSelector(catalogue, name)?.kind === 'concrete')
    expect(cpuMs() - before).toBeLessThan(2_000)
    expect(found).toHaveLength(10_000)
  })
})

function orderOf(routes: Parameters<typeof catalogueOf>[0], selection = 'price') {
  const catalogue = catalogueOf(routes, { selection, usd_eur: 0.5 })
  return resolveSelector(catalogue, 'm')?.routes.map(({ provider }) => provider.name)
}

const eur = (input: number, output: number) => ({ pricing: tokenPrice('eur', input, output) })
const usd = (input: number, output: number) => ({ pricing: tokenPrice('usd', input, output) })
const audio = (...price: Parameters<typeof unitPrice>) => ({
  type: 'transcription',
  pricing: unitPrice(...price),
})

describe('selection by price', () => {
  it('puts the lowest sum of input and output first, in one currency', () => {
    const routes = { 'a/m': eur(1, 3), 'b/m': usd(2, 5.9), 'c/m': usd(3, 5), 'd/m': eur(0.1, 9) }
    expect(orderOf(routes)).toEqual(['b', 'a', 'c', 'd'])
    expect(orderOf(routes, 'order')).toEqual(['a', 'b', 'c', 'd'])
  })

  it('compares sums exactly where floats would not', () => {
    expect(orderOf({ 'a/m': eur(0.1, 0.2), 'b/m': eur(0.3, 0) })).toEqual(['a', 'b'])
    expect(orderOf({ 'b/m': eur(0.3, 0), 'a/m': eur(0.1, 0.2) })).toEqual(['b', 'a'])
  })

  it('puts routes without a price last', () => {
    expect(orderOf({ 'a/m': { pricing: undefined }, 'b/m': eur(9, 9) })).toEqual(['b', 'a'])
  })

  it('compares seconds of audio with minutes, and keeps tokens, audio and requests separate', () => {
    const routes = {
      'r/m': audio('request', 0.0001),
      's/m': audio('audio_second', 0.0001),
      'n/m': audio('audio_minute', 0.005),
      't/m': { type: 'transcription', ...eur(5, 5) },
    }
    expect(orderOf(routes)).toEqual(['t', 'n', 's', 'r'])
  })

  it('leaves the order of the entries as configured', () => {
    const catalogue = catalogueOf({ 'a/m': eur(2, 2), 'b/m': eur(1, 1) }, { selection: 'price' })
    expect(catalogue.entries.map(({ canonical }) => canonical)).toEqual(['m', 'a/m', 'b/m'])
  })
})
