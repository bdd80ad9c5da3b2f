import { bareBaseUrl } from '../../protocol/base-url.ts'
import type { RouteConfig, RouterConfig, ServiceConfig } from '../../protocol/config.ts'
import { selectorOf } from '../../protocol/selector.ts'
import type { Provider, Route } from '../provider/route.ts'
import {
  indexRoutes,
  type CatalogueIndex,
  type Prefer,
  type Resolution,
} from './catalogue-index.ts'
import { preferByPrice } from './selection.ts'

/** The providers whose calls the daemon carries: all of them, or those with an attestation. */
export type Carried = 'all' | 'attested'

/** The routes of one configuration, compiled once so that a request needs only a few map look-ups. */
export interface Catalogue extends CatalogueIndex {
  /** As configured, in configured order. */
  readonly routes: readonly Route[]
  /** The models of `auto`, in order; undefined where none are configured. */
  readonly auto: readonly Resolution[] | undefined
  readonly service: ServiceConfig
  /** A value derived from the catalogue at first use and cached for its lifetime. */
  readonly derived: <T>(build: (catalogue: Catalogue) => T) => T
}

/**
 * Compiles a checked configuration.
 * @param providerApiKeys API keys by provider name, for providers that have one
 * @param daemonCarries the providers whose calls the daemon carries
 * @throws Error naming the path of a reference that does not resolve
 */
export function compileCatalogue(
  config: RouterConfig,
  providerApiKeys: Readonly<Record<string, string>>,
  daemonCarries: Carried,
): Catalogue {
  const { service } = config
  const routes = compileRoutes(config, compileProviders(config, providerApiKeys, daemonCarries))
  const prefer: Prefer =
    service.selection === 'price' ? preferByPrice(routes, service.usd_eur) : (group) => group
  const index = indexRoutes(routes, prefer)
  const auto = service.auto?.map((selector, position) => {
    const resolution = index.bySelector.get(selector)
    if (!resolution) throw new Error(`service.auto[${position}]: no route answers this selector`)
    return resolution
  })
  const memo = new Map<unknown, unknown>()
  const catalogue: Catalogue = {
    ...index,
    routes,
    auto,
    service,
    derived: <T>(build: (catalogue: Catalogue) => T): T => {
      if (!memo.has(build)) memo.set(build, build(catalogue))
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each builder's own result is kept under it
      return memo.get(build) as T
    },
  }
  return catalogue
}

function compileProviders(
  config: RouterConfig,
  apiKeys: Readonly<Record<string, string>>,
  daemonCarries: Carried,
): Map<string, Provider> {
  const entries = Object.entries(config.providers).map(([name, provider]): [string, Provider] => {
    const { adapter } = provider.attestation
    const baseUrl = bareBaseUrl(provider.base_url)
    const apiKey = Object.hasOwn(apiKeys, name) ? apiKeys[name] : undefined
    const isCarried = daemonCarries === 'all' || adapter !== 'none'
    return [name, { name, baseUrl, apiKey, adapter, isCarried }]
  })
  return new Map(entries)
}

function compileRoutes(config: RouterConfig, providers: ReadonlyMap<string, Provider>): Route[] {
  const timesRun = new Map<string, number>()
  for (const route of config.routes) {
    const pair = selectorOf(route.provider, route.model_key)
    timesRun.set(pair, (timesRun.get(pair) ?? 0) + 1)
  }
  return config.routes.map((route, position) => {
    const provider = providers.get(route.provider)
    if (!provider) throw new Error(`routes[${position}].provider: no such provider`)
    const pair = selectorOf(route.provider, route.model_key)
    const id = timesRun.get(pair) === 1 ? pair : selectorOf(route.region, pair)
    return toRoute(id, provider, route)
  })
}

function toRoute(id: string, provider: Provider, config: RouteConfig): Route {
  return { id, modelKey: config.model_key, provider, region: config.region, config }
}
