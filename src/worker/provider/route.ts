import type { ProviderConfig, RouteConfig } from '../../protocol/config.ts'

/** An upstream provider, as far as the worker needs it. */
export interface Provider {
  readonly name: string
  /** Without a trailing slash; endpoint paths are appended to it. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** `none`: it has no attestation. */
  readonly adapter: ProviderConfig['attestation']['adapter']
  /** Whether the daemon carries its calls; otherwise this worker calls it. */
  readonly isCarried: boolean
}

/** One concrete way to reach one model: a region (or none), a provider and a model key. */
export interface Route {
  /** Canonical id: `<provider>/<model_key>`, with the region in front where the id would otherwise be ambiguous. */
  readonly id: string
  readonly modelKey: string
  readonly provider: Provider
  readonly region: string | undefined
  readonly config: RouteConfig
}

/** Whether the route's calls go through the daemon. */
export function isCarried({ provider }: Pick<Route, 'provider'>): boolean {
  return provider.isCarried
}
