import { ApiError } from '../http/errors.ts'
import type { Route } from '../provider/route.ts'
import { acceptsAudioType, acceptsFileSize, isPriced } from './capability.ts'
import type { Catalogue } from './catalogue.ts'
import { notPriced, type PlannedAttempt, type PlanDeps } from './plan.ts'
import { resolveSelector, type Resolution } from './resolve.ts'

/** The routing criteria of a transcription request. */
export interface TranscriptionRoutingCriteria {
  readonly model: string
  readonly region?: string | undefined
  readonly provider?: string | undefined
  /** The canonical media type of the file. */
  readonly mimeType: string
  /** The size of the file, bytes. */
  readonly bytes: number
}

export interface TranscriptionPlan {
  /** Canonical selector of `model`; the hints do not change it. */
  readonly requestedRoute: string
  /** At least one, each route once, in the order of the attempts. */
  readonly attempts: readonly PlannedAttempt[]
}

/**
 * Decides which routes may transcribe a file, and in which order. The hints only filter. Every attempt but the first
 * has `failover`, which means that the first eligible route was not used, even if its circuit only moved it to the end.
 * @throws ApiError `invalid_model` (param `model`, or the hint that leaves no route), `unsupported_file_type` or
 *   `file_too_large` when the routes' own limits exclude the file, `route_not_priced`
 */
export function planTranscription(
  catalogue: Catalogue,
  criteria: TranscriptionRoutingCriteria,
  deps: PlanDeps,
): TranscriptionPlan {
  const resolution = transcriptionModel(catalogue, criteria.model)
  const hinted = hintedRoutes(resolution, criteria)
  const typed = hinted.filter((route) => acceptsAudioType(route, criteria.mimeType))
  if (typed.length === 0) {
    const message = 'No route of the requested model accepts this audio format.'
    throw new ApiError('unsupported_file_type', message, { param: 'file' })
  }
  const eligible = typed.filter((route) => acceptsFileSize(route, criteria.bytes))
  if (eligible.length === 0) {
    const message = 'The file is larger than any route of the requested model accepts.'
    throw new ApiError('file_too_large', message, { param: 'file' })
  }
  const priced = eligible.filter(isPriced)
  if (priced.length === 0) throw notPriced()
  const attempts = deps
    .order(priced)
    .map((route, place) => ({ route, entry: 0, failover: place > 0, effort: undefined }))
  return { requestedRoute: resolution.canonical, attempts }
}

function transcriptionModel(catalogue: Catalogue, selector: string): Resolution {
  const resolution = resolveSelector(catalogue, selector)
  if (resolution?.routes[0]?.config.type === 'transcription') return resolution
  const message = 'The model is unknown or not a transcription model.'
  throw new ApiError('invalid_model', message, { param: 'model' })
}

function hintedRoutes(
  resolution: Resolution,
  criteria: TranscriptionRoutingCriteria,
): readonly Route[] {
  const { region, provider } = criteria
  const inRegion = resolution.routes.filter(
    (route) => region === undefined || route.region === region,
  )
  if (inRegion.length === 0) throw contradicted('region')
  const matching = inRegion.filter(
    (route) => provider === undefined || route.provider.name === provider,
  )
  if (matching.length === 0) throw contradicted('provider')
  return matching
}

function contradicted(param: 'region' | 'provider'): ApiError {
  return new ApiError('invalid_model', `The requested model has no route with this ${param}.`, {
    param,
  })
}
