import { formatPath, type ConfigProblem } from './config-problem.ts'
import type { RouteConfig, RouterConfig } from './config.ts'

/** Problems with the prices of routes, and with the rate that converts them. */
export function priceProblems(config: RouterConfig): ConfigProblem[] {
  return [...pricesAreWhole(config), ...usdHasARate(config)]
}

/** An incomplete price would bill only a part. */
function pricesAreWhole({ routes }: RouterConfig): ConfigProblem[] {
  return routes.flatMap((route, index) => {
    const reason = priceProblem(route)
    return reason === undefined ? [] : [{ path: formatPath(['routes', index, 'pricing']), reason }]
  })
}

const TOKEN_PRICES = [
  'input_per_mtok',
  'output_per_mtok',
  'cache_input_per_mtok',
  'cache_read_input_per_mtok',
  'cache_write_input_per_mtok',
] as const

function priceProblem({ type, pricing }: RouteConfig): string | undefined {
  if (pricing === undefined) return undefined
  const perToken = TOKEN_PRICES.some((member) => pricing[member] !== undefined)
  const perUnit = pricing.billing_unit !== undefined || pricing.unit_amount !== undefined
  if (perToken && perUnit) return 'has token prices and a unit price; give one kind'
  if (!perToken && !perUnit) return 'names a currency and no price'
  if (perUnit) {
    if (type !== 'transcription') return 'unit prices are for transcription routes'
    if (pricing.billing_unit === undefined) return 'unit_amount needs billing_unit'
    return pricing.unit_amount === undefined ? 'billing_unit needs unit_amount' : undefined
  }
  if (pricing.input_per_mtok === undefined) return 'input_per_mtok is missing'
  if (type === 'embedding') return undefined
  return pricing.output_per_mtok === undefined ? 'output_per_mtok is missing' : undefined
}

function usdHasARate({ service, routes }: RouterConfig): ConfigProblem[] {
  if (service.usd_eur !== undefined) return []
  return routes.some((route) => route.pricing?.currency === 'usd')
    ? [{ path: 'service.usd_eur', reason: 'is needed because a route is priced in usd' }]
    : []
}
