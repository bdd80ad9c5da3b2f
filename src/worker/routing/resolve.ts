import type { Catalogue } from './catalogue.ts'
import type { Resolution } from './catalogue-index.ts'

export type { Resolution, RouteKind } from './catalogue-index.ts'

/**
 * What a selector stands for, or undefined where no route answers it. All four forms are taken, and the
 * three-part form for every route as a compatibility id (see docs/api.md). `auto` is no
 * selector of routes: it is expanded by the plan.
 */
export function resolveSelector(catalogue: Catalogue, selector: string): Resolution | undefined {
  return catalogue.bySelector.get(selector)
}
