import { routeSchema, type Pricing, type RouteConfig } from '../../src/protocol/config.ts'
import type { Route } from '../../src/worker/provider/route.ts'

/** A route as the catalogue makes them, of a provider that is never called. */
export function pricedRoute(pricing: Pricing | undefined, more: Partial<RouteConfig> = {}): Route {
  const config = routeSchema.parse({
    model_key: 'glm-5',
    provider: 'nova',
    upstream_model: 'zai-org/GLM-5',
    type: 'chat',
    ...(pricing === undefined ? {} : { pricing }),
    ...more,
  })
  const provider = {
    name: config.provider,
    baseUrl: 'https://nova.invalid/v1',
    apiKey: undefined,
    adapter: 'none',
    isCarried: false,
  } as const
  const id = `${config.provider}/${config.model_key}`
  return { id, modelKey: config.model_key, provider, region: config.region, config }
}
