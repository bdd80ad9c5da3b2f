import type { ProviderConfig, RouteConfig } from '../../protocol/config.ts'

/** An upstream provider as the worker calls it. */
export interface Provider {
  readonly name: string
  /** Without a trailing slash; endpoint paths are appended. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** `none` is called directly; any other goes through the daemon's pinned egress. */
  readonly adapter: ProviderConfig['attestation']['adapter']
}

/** One concrete way to reach one model: a region (or none), a provider and a model key. */
export interface Route {
  /** Canonical id: `<provider>/<model_key>`, or with the region in front where that is needed to be one route. */
  readonly id: string
  readonly modelKey: string
  readonly provider: Provider
  readonly region: string | undefined
  readonly config: RouteConfig
}
