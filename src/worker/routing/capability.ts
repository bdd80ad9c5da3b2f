import { EFFORTS, type Effort } from '../../protocol/effort.ts'
import type { Route } from '../provider/route.ts'

/** What a route can do, as plain questions. */

/** Whether a request on this route can be billed: by tokens, both ways where there is output, or by a unit. */
export function isPriced(route: Route): boolean {
  const { pricing } = route.config
  if (!pricing) return false
  if (pricing.billing_unit !== undefined) return pricing.unit_amount !== undefined
  const { type } = route.config
  const bothWays = type === 'embedding' || pricing.output_per_mtok !== undefined
  return pricing.input_per_mtok !== undefined && bothWays
}

/** Whether the route publishes this effort; one that publishes no reasoning has none, `off` included. */
export function supportsEffort(route: Route, effort: Effort | undefined): boolean {
  return effort === undefined || route.config.reasoning?.efforts[effort] !== undefined
}

/**
 * The effort of the route that is nearest to the one asked for on the ladder, the weaker of two; undefined where the
 * route publishes none.
 */
export function nearestEffort(route: Route, effort: Effort): Effort | undefined {
  const wanted = EFFORTS.indexOf(effort)
  const distance = (other: Effort) => Math.abs(EFFORTS.indexOf(other) - wanted)
  const published = EFFORTS.filter((other) => route.config.reasoning?.efforts[other] !== undefined)
  return published.toSorted((a, b) => distance(a) - distance(b))[0]
}

/** Three names of one container; clients and providers use them alike. */
const SAME_AUDIO_TYPE: Readonly<Record<string, string>> = {
  'audio/m4a': 'audio/mp4',
  'audio/x-m4a': 'audio/mp4',
}

/** Whether the route's own limits admit this type of audio; without a list it takes all the router takes. */
export function acceptsAudioType(route: Route, mimeType: string): boolean {
  const wanted = plainAudioType(mimeType)
  const accepted = route.config.audio?.mime_types
  return accepted === undefined || accepted.some((type) => plainAudioType(type) === wanted)
}

/** Whether the route's own limits admit a file of this many bytes. */
export function acceptsFileSize(route: Route, bytes: number): boolean {
  return bytes <= (route.config.audio?.max_bytes ?? Number.POSITIVE_INFINITY)
}

function plainAudioType(mimeType: string): string {
  const type = mimeType.toLowerCase()
  return SAME_AUDIO_TYPE[type] ?? type
}
