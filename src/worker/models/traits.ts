import type { RouteConfig } from '../../protocol/config.ts'
import type { Provider } from '../provider/route.ts'
import { EFFORTS, type Effort } from '../../protocol/effort.ts'

/** What entries publish about their routes besides prices (docs/api.md). */

export type PromptCaching = NonNullable<RouteConfig['prompt_caching']>

export interface Reasoning {
  /** In ascending order. On an aggregate: supported by at least one route. */
  readonly supported_efforts: readonly Effort[]
  /** Aggregates only: supported by every route. */
  readonly guaranteed_efforts?: readonly Effort[]
  readonly default_effort?: Effort
}

/** How the providers of an entry are attested. */
export interface Attestation {
  /** Whether every route is used only after its provider's evidence was verified. */
  readonly attested: boolean
  /** The kinds of evidence, each once; empty where no provider has any. */
  readonly adapters: readonly string[]
}

/** The attestation of an entry, by the adapters of its routes' providers. */
export function attestationOf(adapters: readonly Provider['adapter'][]): Attestation {
  return {
    attested: adapters.every((adapter) => adapter !== 'none'),
    adapters: [...new Set(adapters)].filter((adapter) => adapter !== 'none'),
  }
}

/** The precision that all routes share; undefined where they differ or one has none. */
export function commonPrecision(routes: readonly RouteConfig[]): string | undefined {
  return agreed(routes.map((route) => route.precision))
}

/** A route's own reasoning. */
export function reasoningOf(route: RouteConfig): Reasoning | undefined {
  if (!route.reasoning) return undefined
  const { default_effort: defaultEffort } = route.reasoning
  return { supported_efforts: effortsOf(route), default_effort: defaultEffort }
}

/**
 * The union and the intersection of the efforts of all routes; a route without reasoning supports no effort and has no
 * default.
 */
export function combineReasoning(routes: readonly RouteConfig[]): Reasoning | undefined {
  if (routes.every((route) => route.reasoning === undefined)) return undefined
  const ladders = routes.map(effortsOf)
  const defaultEffort = agreed(routes.map((route) => route.reasoning?.default_effort))
  return {
    supported_efforts: EFFORTS.filter((effort) =>
      ladders.some((ladder) => ladder.includes(effort)),
    ),
    guaranteed_efforts: EFFORTS.filter((effort) =>
      ladders.every((ladder) => ladder.includes(effort)),
    ),
    ...(defaultEffort === undefined ? {} : { default_effort: defaultEffort }),
  }
}

/**
 * A flag is true only if it is true on every route; a route without the metadata counts as false. The billing mode is
 * published only where all routes agree.
 */
export function combineCaching(routes: readonly RouteConfig[]): PromptCaching | undefined {
  const caching = routes.map((route) => route.prompt_caching)
  if (caching.every((entry) => entry === undefined)) return undefined
  const all = (flag: 'supported' | 'verified' | 'default_enabled') =>
    caching.every((entry) => entry?.[flag] === true)
  const billingMode = agreed(caching.map((entry) => entry?.billing_mode))
  return {
    supported: all('supported'),
    verified: all('verified'),
    ...(caching.some((entry) => entry?.default_enabled !== undefined)
      ? { default_enabled: all('default_enabled') }
      : {}),
    ...(billingMode === undefined ? {} : { billing_mode: billingMode }),
  }
}

function effortsOf({ reasoning }: RouteConfig): readonly Effort[] {
  return EFFORTS.filter((effort) => reasoning?.efforts[effort] !== undefined)
}

function agreed<T>(values: readonly T[]): T | undefined {
  const [first] = values
  return values.every((value) => value === first) ? first : undefined
}
