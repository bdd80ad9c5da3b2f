import type { RouteType } from '../../protocol/config.ts'
import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { Catalogue } from '../routing/catalogue.ts'
import { resolveSelector, type Resolution } from '../routing/resolve.ts'
import { detailsOf, entryOf, type ModelDetails, type ModelEntry } from './entry.ts'
import { proofsOf } from './proofs.ts'

/** The models of one catalogue, each serialised once: the endpoint is public and must stay cheap. */
export interface Listing {
  readonly models: readonly ListedModel[]
  readonly byResolution: ReadonlyMap<Resolution, ListedModel>
}

/** One entry with its filterable properties, and its JSON without and with details. */
export interface ListedModel {
  readonly resolution: Resolution
  readonly type: RouteType
  readonly brief: string
  /** With the current verification status of attested routes; null where the daemon does not report it. */
  readonly detailed: (proofs: readonly ProviderProof[] | null, now: number) => string
  /** Whether any of its routes is attested. */
  readonly needsProof: boolean
}

/** The filters of a list. Entries match by their own members, so an aggregate over several regions has no region. */
export interface ModelFilter {
  readonly modelKey: string | undefined
  readonly region: string | undefined
  readonly provider: string | undefined
  readonly type: RouteType | undefined
  /** A selector, canonical or not. */
  readonly routeId: string | undefined
}

/** Builds the listing; to be used with `catalogue.derived`, so that it is built once. */
export function buildListing(catalogue: Catalogue): Listing {
  const models = catalogue.entries.map((resolution) => listedModel(resolution, catalogue))
  return { models, byResolution: new Map(models.map((model) => [model.resolution, model])) }
}

/** The model that a selector of any form names. */
export function findModel(catalogue: Catalogue, selector: string): ListedModel | undefined {
  const resolution = resolveSelector(catalogue, selector)
  return resolution && catalogue.derived(buildListing).byResolution.get(resolution)
}

/** The models that match every given filter, in catalogue order. */
export function filterModels(catalogue: Catalogue, filter: ModelFilter): readonly ListedModel[] {
  const { routeId, modelKey, region, provider, type } = filter
  const named =
    routeId === undefined
      ? catalogue.derived(buildListing).models
      : [findModel(catalogue, routeId)].filter((model) => model !== undefined)
  return named.filter(
    ({ resolution, type: ownType }) =>
      (modelKey === undefined || resolution.modelKey === modelKey) &&
      (region === undefined || resolution.region === region) &&
      (provider === undefined || resolution.provider === provider) &&
      (type === undefined || ownType === type),
  )
}

function listedModel(resolution: Resolution, { service }: Catalogue): ListedModel {
  const entry = entryOf(resolution, service.name)
  const details = detailsOf(resolution, service)
  return {
    resolution,
    type: details.type,
    brief: JSON.stringify(entry),
    ...detailing(resolution, { ...entry, service: details }),
  }
}

/** Serialised once where no route is attested, otherwise for each answer. */
function detailing(
  { routes }: Resolution,
  entry: ModelEntry & { readonly service: ModelDetails },
): Pick<ListedModel, 'detailed' | 'needsProof'> {
  const { service } = entry
  if (service.attestation.adapters.length === 0) {
    const printed = JSON.stringify(entry)
    return { detailed: () => printed, needsProof: false }
  }
  const detailed: ListedModel['detailed'] = (known, now) => {
    const proofs = known === null ? null : proofsOf(routes, known, now)
    const attestation = { ...service.attestation, proofs }
    return JSON.stringify({ ...entry, service: { ...service, attestation } })
  }
  return { detailed, needsProof: true }
}
