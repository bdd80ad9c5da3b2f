import { EFFORTS, type Effort } from '../../protocol/effort.ts'
import type { Route } from '../provider/route.ts'

/** Predicates about what a route supports. */

/** Whether a request on this route can be billed: by tokens (input, and output where there is any) or by a unit. */
export function isPriced(route: Route): boolean {
  const { pricing } = route.config
  if (!pricing) return false
  if (pricing.billing_unit !== undefined) return pricing.unit_amount !== undefined
  const { type } = route.config
  const bothWays = type === 'embedding' || pricing.output_per_mtok !== undefined
  return pricing.input_per_mtok !== undefined && bothWays
}

/** Whether the route publishes this effort. A route without published reasoning supports none, not even `off`. */
export function supportsEffort(route: Route, effort: Effort | undefined): boolean {
  return effort === undefined || route.config.reasoning?.efforts[effort] !== undefined
}

/**
 * The effort of the route nearest to the requested one, the lower of two equally near; undefined where the route
 * publishes none.
 */
export function nearestEffort(route: Route, effort: Effort): Effort | undefined {
  const wanted = EFFORTS.indexOf(effort)
  const distance = (other: Effort) => Math.abs(EFFORTS.indexOf(other) - wanted)
  const published = EFFORTS.filter((other) => route.config.reasoning?.efforts[other] !== undefined)
  return published.toSorted((a, b) => distance(a) - distance(b))[0]
}

/** Alternative names of one container format, which clients and providers use interchangeably. */
const SAME_AUDIO_TYPE: Readonly<Record<string, string>> = {
  'audio/m4a': 'audio/mp4',
  'audio/x-m4a': 'audio/mp4',
}

/** Whether the route's own list of audio types allows this one; without a list every type that the router accepts. */
export function acceptsAudioType(route: Route, mimeType: string): boolean {
  const wanted = plainAudioType(mimeType)
  const accepted = route.config.audio?.mime_types
  return accepted === undefined || accepted.some((type) => plainAudioType(type) === wanted)
}

/** Whether the route's own size limit allows a file of this many bytes. */
export function acceptsFileSize(route: Route, bytes: number): boolean {
  return bytes <= (route.config.audio?.max_bytes ?? Number.POSITIVE_INFINITY)
}

function plainAudioType(mimeType: string): string {
  const type = mimeType.toLowerCase()
  return SAME_AUDIO_TYPE[type] ?? type
}
