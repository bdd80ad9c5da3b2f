import type { Catalogue } from './catalogue.ts'
import type { Resolution } from './catalogue-index.ts'

export type { Resolution, RouteKind } from './catalogue-index.ts'

/**
 * The routes that a selector names, or undefined where there is none. All four forms are accepted, and the three-part
 * form for every route as a compatibility id (see docs/api.md). `auto` is not resolved here: the plan expands it.
 */
export function resolveSelector(catalogue: Catalogue, selector: string): Resolution | undefined {
  return catalogue.bySelector.get(selector)
}
