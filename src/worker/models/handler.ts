import { ROUTE_TYPES } from '../../protocol/config.ts'
import type { Context, Handler } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { BOOLEAN, NAME, oneOf, readParameter, SELECTOR } from '../http/query.ts'
import { text } from '../http/reply.ts'
import { filterModels, findModel, type ListedModel } from './listing.ts'

/** The parameters of both endpoints; only the list has the filters. */
export const MODEL_PARAMETERS = {
  detail: BOOLEAN,
  model_key: NAME,
  region: NAME,
  provider: NAME,
  route_id: SELECTOR,
  type: oneOf(ROUTE_TYPES),
}

/**
 * GET /v1/models: every entry that matches all filters. Unknown values match nothing.
 * @throws ApiError `invalid_parameter` for a malformed value
 */
export const listModels: Handler = async (request, context) => {
  const { catalogue } = context
  const query = new URL(request.url).searchParams
  const forms = MODEL_PARAMETERS
  const detail = readParameter(query, 'detail', forms.detail)
  const models = filterModels(catalogue, {
    modelKey: readParameter(query, 'model_key', forms.model_key),
    region: readParameter(query, 'region', forms.region),
    provider: readParameter(query, 'provider', forms.provider),
    routeId: readParameter(query, 'route_id', forms.route_id),
    type: readParameter(query, 'type', forms.type),
  })
  const data = await printedModels(models, detail, context)
  return printedJson(`{"object":"list","data":[${data.join(',')}]}`)
}

/**
 * GET /v1/models/{id}: the entry that a selector names, by its canonical id or a compatibility id.
 * @throws ApiError `model_not_found`, or `invalid_parameter` for a malformed `detail`
 */
export const retrieveModel: Handler = async (request, context, params) => {
  const detail = readParameter(new URL(request.url).searchParams, 'detail', MODEL_PARAMETERS.detail)
  const model = findModel(context.catalogue, params['id'] ?? '')
  if (!model) throw new ApiError('model_not_found', 'No model has this id.', { param: 'model' })
  const [printed = ''] = await printedModels([model], detail, context)
  return printedJson(printed)
}

/** Asks the daemon only where a verification status is to be shown. If it is unreachable, shows the status as unknown. */
async function printedModels(
  models: readonly ListedModel[],
  detail: boolean | undefined,
  { link, now }: Context,
): Promise<readonly string[]> {
  if (detail !== true) return models.map(({ brief }) => brief)
  const wanted = models.some(({ needsProof }) => needsProof)
  const proofs = wanted ? await link.recentProofs().catch(() => null) : null
  return models.map(({ detailed }) => detailed(proofs, now()))
}

function printedJson(body: string): Response {
  return text(body, { 'content-type': 'application/json' })
}
