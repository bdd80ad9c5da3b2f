import { ApiError } from '../http/errors.ts'
import type { Catalogue } from './catalogue.ts'
import type { PlannedAttempt } from './plan.ts'
import { resolveSelector } from './resolve.ts'

/**
 * The attempts whose routes a key may use, in unchanged order.
 * @param selectors those of the key, null for all; a selector that no longer resolves to a route allows nothing
 * @throws ApiError `model_not_allowed` when none is left
 */
export function allowedAttempts(
  catalogue: Catalogue,
  attempts: readonly PlannedAttempt[],
  selectors: readonly string[] | null,
): readonly PlannedAttempt[] {
  if (selectors === null) return attempts
  const routes = new Set(
    selectors.flatMap((selector) => resolveSelector(catalogue, selector)?.routes ?? []),
  )
  const allowed = attempts.filter(({ route }) => routes.has(route))
  if (allowed.length > 0) return allowed
  const message = 'This API key may not use the requested model; GET /v1/key lists those it may.'
  throw new ApiError('model_not_allowed', message, { param: 'model' })
}
