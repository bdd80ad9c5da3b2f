import { ApiError } from '../http/errors.ts'
import type { Route } from '../provider/route.ts'
import { isPriced } from './capability.ts'
import type { Catalogue } from './catalogue.ts'
import { notPriced, type PlannedAttempt, type PlanDeps } from './plan.ts'
import { resolveSelector, type Resolution } from './resolve.ts'

/** The routing criteria of an embeddings request. */
export interface EmbeddingRoutingCriteria {
  readonly model: string
  /**
   * The caller's alternatives, in order. Vectors of different models cannot be compared; the caller is responsible.
   */
  readonly failover: readonly string[]
  readonly inputs: number
  readonly dimensions: number | undefined
}

export interface EmbeddingPlan {
  /** Canonical primary selector. */
  readonly requestedRoute: string
  /** At least one, each route once, in the order of the attempts. */
  readonly attempts: readonly PlannedAttempt[]
}

/** Maximum number of inputs of a route that configures none. */
const DEFAULT_MAX_INPUTS = 2048

/**
 * Decides which routes may answer a request for embeddings, and in which order.
 * @throws ApiError `model_not_found` (param `model` or `failover`), `invalid_request_error` for a model of another
 *   endpoint, for `dimensions` or a number of inputs that no route takes, `route_not_priced`
 */
export function planEmbedding(
  catalogue: Catalogue,
  criteria: EmbeddingRoutingCriteria,
  deps: PlanDeps,
): EmbeddingPlan {
  const entries = [criteria.model, ...criteria.failover].map((selector, entry) =>
    embeddingModel(catalogue, selector, entry === 0 ? 'model' : 'failover'),
  )
  const narrowed = narrow(entries, criteria)
  const attempts = new Map<Route, PlannedAttempt>()
  for (const [entry, routes] of narrowed.entries()) {
    for (const route of deps.order(routes)) {
      if (attempts.has(route)) continue
      attempts.set(route, { route, entry, failover: entry > 0, effort: undefined })
    }
  }
  return {
    requestedRoute: entries[0]?.canonical ?? criteria.model,
    attempts: [...attempts.values()],
  }
}

function embeddingModel(catalogue: Catalogue, selector: string, param: string): Resolution {
  const found = resolveSelector(catalogue, selector)
  if (found === undefined) {
    const message = `No route answers the selector in \`${param}\`; GET /v1/models lists those that exist.`
    throw new ApiError('model_not_found', message, { param })
  }
  if (found.routes[0]?.config.type === 'embedding') return found
  const message = `The model in \`${param}\` is not an embedding model.`
  throw new ApiError('invalid_request_error', message, { param })
}

function narrow(
  entries: readonly Resolution[],
  { inputs, dimensions }: EmbeddingRoutingCriteria,
): readonly (readonly Route[])[] {
  const all = entries.map(({ routes }) => routes)
  const sized = keep(
    all,
    ({ config }) => dimensions === undefined || config.embedding?.dimensions === true,
    () => refusal('dimensions', 'No route of the requested model takes "dimensions".'),
  )
  const fitting = keep(
    sized,
    ({ config }) => inputs <= (config.embedding?.max_inputs ?? DEFAULT_MAX_INPUTS),
    () => refusal('input', 'No route of the requested model takes so many inputs at once.'),
  )
  return keep(fitting, isPriced, notPriced)
}

function keep(
  entries: readonly (readonly Route[])[],
  fits: (route: Route) => boolean,
  none: () => ApiError,
): readonly (readonly Route[])[] {
  const kept = entries.map((routes) => routes.filter(fits))
  if (kept.every((routes) => routes.length === 0)) throw none()
  return kept
}

function refusal(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', message, { param })
}
