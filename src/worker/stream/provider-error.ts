import { BrokenStream } from './broken-stream.ts'
import { isJsonObject, parseJsonObject, type JsonObject } from './json-object.ts'

/** Members in which the known servers report a status or a kind of error. */
const KIND_MEMBERS = ['code', 'status', 'status_code', 'type', 'error_type'] as const

/**
 * Rejects a chunk or body that reports an error, whatever else it holds. Known forms: an `error` object or string
 * (OpenRouter sends it together with choices), and the flat `{"object": "error"}` of older servers.
 * @throws BrokenStream when the chunk or body reports an error
 */
export function refuseProviderError(chunk: JsonObject): void {
  const { error, object, type } = chunk
  const reported = error !== undefined && error !== null
  if (reported || object === 'error' || type === 'error') throw asBroken(chunk)
}

/** The failure for an event named `error`, whatever its data. */
export function readErrorEvent(data: string): BrokenStream {
  try {
    return asBroken(parseJsonObject(data))
  } catch {
    return new BrokenStream('error_event')
  }
}

/** A rate limit is recognised by codes and types only; the provider's text is not examined. */
function asBroken(chunk: JsonObject): BrokenStream {
  const { error } = chunk
  const limited = isRateLimit(chunk) || (isJsonObject(error) && isRateLimit(error))
  return new BrokenStream(limited ? 'rate_limited' : 'error_event')
}

function isRateLimit(error: JsonObject): boolean {
  return KIND_MEMBERS.some((member) => {
    const value = error[member]
    if (value === 429 || value === '429') return true
    if (typeof value !== 'string') return false
    const kind = value.toLowerCase().replaceAll(/[^a-z]/g, '')
    return kind.includes('ratelimit') || kind.includes('toomanyrequests')
  })
}
