import { checkConfig } from '../../src/protocol/config-rules.ts'
import type { RouterConfig } from '../../src/protocol/config.ts'
import { compileCatalogue, type Catalogue } from '../../src/worker/routing/catalogue.ts'

/** Members of a route beyond its names. */
export type RouteExtras = Readonly<Record<string, unknown>>

/** Prices per million tokens. */
export function tokenPrice(currency: 'eur' | 'usd', input: number, output: number) {
  return { currency, input_per_mtok: input, output_per_mtok: output }
}

/** A price in EUR by another unit than the token. */
export function unitPrice(billingUnit: string, amount: number) {
  return { currency: 'eur', billing_unit: billingUnit, unit_amount: amount }
}

/** The reasoning of a route that publishes these efforts; the first is its default. */
export function reasoningOf(...efforts: readonly string[]) {
  const patches = efforts.map((effort) => [effort, { reasoning_effort: effort }])
  return { default_effort: efforts[0], efforts: Object.fromEntries(patches) as unknown }
}

/**
 * A checked configuration from a short list of routes: `nova/glm` or `eu/nova/glm`, each with what differs
 * from a priced chat route. Providers are made up as named.
 */
export function routerConfig(
  routes: Readonly<Record<string, RouteExtras>>,
  service: Readonly<Record<string, unknown>> = {},
): RouterConfig {
  const written = Object.entries(routes).map(([names, extras]) => writtenRoute(names, extras))
  const providers = written.map(({ provider }) => [
    provider,
    { base_url: `https://${provider}.example/v1/`, attestation: { adapter: 'none' } },
  ])
  const check = checkConfig({
    service: { name: 'router', mode: 'local', ...service },
    providers: Object.fromEntries(providers) as unknown,
    routes: written,
  })
  if (!check.ok) throw new Error(JSON.stringify(check.problems))
  return check.config
}

/** The catalogue of such a configuration. */
export function catalogueOf(...config: Parameters<typeof routerConfig>): Catalogue {
  return compileCatalogue(routerConfig(...config), {}, 'attested')
}

function writtenRoute(names: string, extras: RouteExtras) {
  const parts = names.split('/')
  const [modelKey = '', provider = '', region] = parts.toReversed()
  return {
    model_key: modelKey,
    provider,
    ...(region === undefined ? {} : { region }),
    upstream_model: `upstream-${modelKey}`,
    type: 'chat',
    pricing: tokenPrice('eur', 1, 2),
    ...extras,
  }
}
