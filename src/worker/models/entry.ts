import type { Pricing, RouteConfig, RouteType, ServiceConfig } from '../../protocol/config.ts'
import type { Resolution, RouteKind } from '../routing/resolve.ts'
import { ceilingOf, type CeilingPricing } from './ceiling.ts'
import {
  attestationOf,
  combineCaching,
  combineReasoning,
  commonPrecision,
  reasoningOf,
  type Attestation,
  type PromptCaching,
  type Reasoning,
} from './traits.ts'

/** An entry without details, in the standard format. */
export interface ModelEntry {
  /** A canonical route selector. */
  readonly id: string
  readonly object: 'model'
  readonly created: number
  readonly owned_by: string
}

/** The `service` block of a detailed entry (docs/models.md). */
export interface ModelDetails {
  readonly model_key: string
  readonly route_kind: RouteKind
  readonly region?: string
  readonly provider?: string
  readonly type: RouteType
  readonly attestation: Attestation
  readonly pricing?: Pricing | CeilingPricing
  readonly precision?: string
  readonly prompt_caching?: PromptCaching
  readonly reasoning?: Reasoning
}

/**
 * Seconds since the epoch on every entry: 2026-01-01T00:00:00Z. The format requires the member, and the configuration
 * has no date for a model; a clock would give one model two dates.
 */
const CREATED = 1_767_225_600

/** The entry of a resolution, owned by the provider if it is the only one, else by the service. */
export function entryOf(resolution: Resolution, serviceName: string): ModelEntry {
  const ownedBy = resolution.provider ?? serviceName
  return { id: resolution.canonical, object: 'model', created: CREATED, owned_by: ownedBy }
}

/** The details of a resolution: a route's own, or those of an aggregate over all its routes. */
export function detailsOf(resolution: Resolution, service: ServiceConfig): ModelDetails {
  const { modelKey, kind, region, provider } = resolution
  const configs = resolution.routes.map((route) => route.config)
  const [first] = configs
  if (!first) throw new Error('internal error: a resolution without a route')
  return {
    model_key: modelKey,
    route_kind: kind,
    ...(region === undefined ? {} : { region }),
    ...(provider === undefined ? {} : { provider }),
    type: first.type,
    attestation: attestationOf(resolution.routes.map((route) => route.provider.adapter)),
    ...present(kind === 'concrete' ? ownTraits(first) : combinedTraits(configs, service)),
  }
}

/** Optional members; those that are undefined are omitted from the entry. */
interface Traits {
  readonly pricing: Pricing | CeilingPricing | undefined
  readonly precision: string | undefined
  readonly prompt_caching: PromptCaching | undefined
  readonly reasoning: Reasoning | undefined
}

function ownTraits(route: RouteConfig): Traits {
  return {
    pricing: route.pricing,
    precision: route.precision,
    prompt_caching: route.prompt_caching,
    reasoning: reasoningOf(route),
  }
}

function combinedTraits(routes: readonly RouteConfig[], service: ServiceConfig): Traits {
  const prices = routes.flatMap((route) => route.pricing ?? [])
  return {
    pricing: ceilingOf(prices, service.usd_eur),
    precision: commonPrecision(routes),
    prompt_caching: combineCaching(routes),
    reasoning: combineReasoning(routes),
  }
}

function present({ pricing, precision, prompt_caching, reasoning }: Traits) {
  return {
    ...(pricing === undefined ? {} : { pricing }),
    ...(precision === undefined ? {} : { precision }),
    ...(prompt_caching === undefined ? {} : { prompt_caching }),
    ...(reasoning === undefined ? {} : { reasoning }),
  }
}
