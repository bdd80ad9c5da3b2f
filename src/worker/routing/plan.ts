import type { Effort } from '../../protocol/effort.ts'
import { AUTO } from '../../protocol/selector.ts'
import { ApiError } from '../http/errors.ts'
import type { Route } from '../provider/route.ts'
import { isPriced, nearestEffort, supportsEffort } from './capability.ts'
import type { Catalogue } from './catalogue.ts'
import { resolveSelector, type Resolution } from './resolve.ts'

/** The routing criteria of a chat request. */
export interface ChatRoutingCriteria {
  readonly model: string
  /** The caller's alternatives, in order. */
  readonly failover: readonly string[]
  readonly reasoning: Effort | undefined
  /**
   * Whether only routes with exactly this effort qualify, which is the default, or each may use the nearest it
   * supports.
   */
  readonly effortMatch?: 'exact' | 'nearest'
}

/** One planned attempt. */
export interface PlannedAttempt {
  readonly route: Route
  /** 0 for the primary, n for the n-th alternative of the caller. */
  readonly entry: number
  /** The value of `service.failover` when this attempt serves. */
  readonly failover: boolean
  /** The effort to request: the caller's, else the route's default, else none. */
  readonly effort: Effort | undefined
}

export interface ChatPlan {
  /** Canonical primary selector: a bare key stays bare, `auto` stays `auto`. */
  readonly requestedRoute: string
  /** Whether the rules of document OCR apply to the request. */
  readonly ocr: boolean
  /** At least one, each route once, in the order of the attempts. */
  readonly attempts: readonly PlannedAttempt[]
}

export interface PlanDeps {
  /** Orders the candidates of one selector; never removes one. */
  readonly order: (routes: readonly Route[]) => readonly Route[]
}

/** One selector of the request; `auto` expands to several. */
interface Entry {
  readonly position: number
  readonly resolutions: readonly Resolution[]
}

/**
 * Decides which routes may serve a chat request, and in which order: the primary's candidates, then those of each
 * alternative. Routes that lack the effort, a price or (where the primary is an OCR model) OCR are removed. None is
 * ever added, so a request never leaves the selectors it named.
 * @throws ApiError `model_not_found` (param `model` or `failover`), `invalid_request_error` for a model of another
 *   endpoint (same params) or an effort that no candidate has (param `reasoning`), `route_not_priced` when no remaining
 *   candidate has a price
 */
export function planChat(
  catalogue: Catalogue,
  criteria: ChatRoutingCriteria,
  deps: PlanDeps,
): ChatPlan {
  const entries = [criteria.model, ...criteria.failover].map((selector, position) =>
    chatEntry(catalogue, selector, position),
  )
  const ocr = isOcr(entries[0])
  const able = narrow(entries, (route) => route.config.ocr === ocr)
  const anyEffort = ocr || criteria.effortMatch === 'nearest'
  const supporting = anyEffort
    ? able
    : narrow(able, (route) => supportsEffort(route, criteria.reasoning))
  if (supporting.length === 0) {
    const message = `No route of the requested models supports the reasoning effort '${criteria.reasoning}'.`
    throw new ApiError('invalid_request_error', message, { param: 'reasoning' })
  }
  const priced = narrow(supporting, isPriced)
  if (priced.length === 0) throw notPriced()
  return {
    requestedRoute: criteria.model === AUTO ? AUTO : canonicalOf(entries[0]),
    ocr,
    attempts: inOrder(priced, criteria, ocr, deps),
  }
}

/** The error where no candidate has a price; only the operator can fix it. */
export function notPriced(): ApiError {
  return new ApiError('route_not_priced', 'No route of the requested model has a price.')
}

function chatEntry(catalogue: Catalogue, selector: string, position: number): Entry {
  const param = position === 0 ? 'model' : 'failover'
  const found = selector === AUTO ? catalogue.auto : resolveSelector(catalogue, selector)
  if (!found) {
    const message = `No route answers the selector in \`${param}\`; GET /v1/models lists those that exist.`
    throw new ApiError('model_not_found', message, { param })
  }
  const resolutions = 'canonical' in found ? [found] : found
  if (!resolutions.every(isChat)) {
    const message = `The model in \`${param}\` is not a chat model.`
    throw new ApiError('invalid_request_error', message, { param })
  }
  return { position, resolutions }
}

/** All routes of a model key have one type, so the first one decides. */
function isChat(resolution: Resolution): boolean {
  return resolution.routes[0]?.config.type === 'chat'
}

/** The first candidate decides before health reorders them, because health must not change the rules of a request. */
function isOcr(primary: Entry | undefined): boolean {
  return primary?.resolutions[0]?.routes[0]?.config.ocr ?? false
}

function canonicalOf(primary: Entry | undefined): string {
  return primary?.resolutions[0]?.canonical ?? AUTO
}

/** The entries with only the routes that fit; entries without any are removed. */
function narrow(entries: readonly Entry[], fits: (route: Route) => boolean): Entry[] {
  return entries.flatMap((entry) => {
    const resolutions = entry.resolutions.flatMap((resolution) => {
      if (resolution.routes.every(fits)) return [resolution]
      const routes = resolution.routes.filter(fits)
      return routes.length === 0 ? [] : [{ ...resolution, routes }]
    })
    return resolutions.length === 0 ? [] : [{ ...entry, resolutions }]
  })
}

function inOrder(
  entries: readonly Entry[],
  criteria: ChatRoutingCriteria,
  ocr: boolean,
  deps: PlanDeps,
): PlannedAttempt[] {
  const attempts = new Map<Route, PlannedAttempt>()
  for (const { position, resolutions } of entries) {
    for (const route of resolutions.flatMap(({ routes }) => deps.order(routes))) {
      if (attempts.has(route)) continue
      const effort = effortOn(route, ocr ? { ...criteria, reasoning: undefined } : criteria)
      attempts.set(route, { route, entry: position, failover: position > 0, effort })
    }
  }
  return [...attempts.values()]
}

/** The effort for this route: the caller's or the nearest to it, else the route's default. */
function effortOn(
  route: Route,
  { reasoning, effortMatch }: Pick<ChatRoutingCriteria, 'reasoning' | 'effortMatch'>,
): Effort | undefined {
  if (reasoning === undefined) return route.config.reasoning?.default_effort
  return effortMatch === 'nearest' ? nearestEffort(route, reasoning) : reasoning
}
