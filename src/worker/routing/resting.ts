import type { Catalogue } from './catalogue.ts'
import type { RouteHealth, RouteStatus } from './health.ts'

const RESTING = { closed: 0, half_open: 0.5, open: 1 } as const

/** Routes that are not in service, by id: 1 resting, 0.5 being probed. */
export function restingStates(routes: readonly RouteStatus[]): Record<string, number> {
  const states = routes.map(({ route, state }) => [route, RESTING[state]] as const)
  return Object.fromEntries(states.filter(([, state]) => state > 0))
}

/**
 * The same for all routes of the current configuration; empty if none has been loaded.
 * @param now ms since the epoch
 */
export function restingNow(
  settings: { readonly health: RouteHealth; readonly catalogue: Catalogue } | undefined,
  now: number,
): Record<string, number> {
  return restingStates(settings?.health.snapshot(now, settings.catalogue.routes) ?? [])
}
