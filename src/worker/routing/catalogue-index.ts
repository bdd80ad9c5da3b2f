import { fullSelector, selectorOf } from '../../protocol/selector.ts'
import type { Route } from '../provider/route.ts'

/** The kinds of entries a selector can name, from the least to the most specific. */
export type RouteKind = 'logical' | 'region' | 'provider' | 'concrete'

/** The routes that a selector names. All have the same model key, so resolution never changes the model. */
export interface Resolution {
  /** The canonical selector, which answers, receipts and the models list use. */
  readonly canonical: string
  readonly modelKey: string
  readonly kind: RouteKind
  /** Present on region entries and on concrete ones that have a region. */
  readonly region: string | undefined
  /** Present on provider and concrete entries. */
  readonly provider: string | undefined
  /** At least one, in order of preference. */
  readonly routes: readonly Route[]
}

/** All entries and selectors of a catalogue. */
export interface CatalogueIndex {
  /**
   * Each entry once: model keys in configured order, and for each model key the logical, region, provider and concrete
   * entries.
   */
  readonly entries: readonly Resolution[]
  /** Every accepted selector, canonical or not. */
  readonly bySelector: ReadonlyMap<string, Resolution>
}

/** Sorts the candidates of one selector by preference. */
export type Prefer = (routes: readonly Route[]) => readonly Route[]

/** Builds the entries for a set of routes. Linear in their number; done once for a configuration. */
export function indexRoutes(routes: readonly Route[], prefer: Prefer): CatalogueIndex {
  const byKey = Map.groupBy(routes, (route) => route.modelKey)
  const entries = [...byKey]
    .flatMap(([modelKey, group]) => entriesOfKey(modelKey, group))
    .map((entry) => ({ ...entry, routes: prefer(entry.routes) }))
  const bySelector = new Map<string, Resolution>()
  for (const entry of entries) {
    bySelector.set(entry.canonical, entry)
    const [route] = entry.routes
    if (entry.kind === 'concrete' && route) bySelector.set(fullName(route), entry)
  }
  return { entries, bySelector }
}

function entriesOfKey(modelKey: string, routes: readonly Route[]): Resolution[] {
  const logical: Resolution = {
    canonical: modelKey,
    modelKey,
    kind: 'logical',
    region: undefined,
    provider: undefined,
    routes,
  }
  const entries = [logical]
  for (const [region, group] of Map.groupBy(routes, (route) => route.region)) {
    if (region === undefined) continue
    const canonical = selectorOf(region, modelKey)
    entries.push({ ...logical, canonical, kind: 'region', region, routes: group })
  }
  // A provider that serves the model once needs no aggregate: its two-part name is the concrete route.
  for (const [provider, group] of Map.groupBy(routes, (route) => route.provider.name)) {
    if (group.length === 1) continue
    const canonical = selectorOf(provider, modelKey)
    entries.push({ ...logical, canonical, kind: 'provider', provider, routes: group })
  }
  for (const route of routes) {
    const provider = route.provider.name
    const { id: canonical, region } = route
    entries.push({ modelKey, canonical, kind: 'concrete', region, provider, routes: [route] })
  }
  return entries
}

function fullName(route: Route): string {
  const { modelKey, region } = route
  return fullSelector({ modelKey, region, provider: route.provider.name })
}
