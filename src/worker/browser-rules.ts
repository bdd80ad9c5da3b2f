/** Headers for browsers: which origins may read an answer. */

const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST',
  // Client libraries send headers of their own. The wildcard does not cover `authorization`.
  'access-control-allow-headers': 'authorization, *',
  'access-control-max-age': '600',
}

export interface CrossOrigin {
  readonly audience: 'public' | 'keyed' | 'admin'
  /** The request's `Origin`, if it came from a page. */
  readonly origin: string | null
  /** Origins the operator allows on keyed endpoints; `*` allows every one. Browsers never send keys by themselves. */
  readonly allowed: readonly string[]
  /** Whether the request is a CORS preflight. */
  readonly preflight: boolean
}

/**
 * Headers that let a page of another origin read an answer: on public endpoints every page, on keyed ones the
 * configured origins.
 */
export function crossOriginHeaders(crossOrigin: CrossOrigin): Readonly<Record<string, string>> {
  const reader = readerOf(crossOrigin)
  const differs =
    crossOrigin.audience === 'keyed' && crossOrigin.allowed.length > 0 && reader !== '*'
  const varies = differs ? { vary: 'origin' } : {}
  if (reader === undefined) return varies
  return {
    'access-control-allow-origin': reader,
    ...varies,
    ...(crossOrigin.preflight ? PREFLIGHT_HEADERS : { 'access-control-expose-headers': '*' }),
  }
}

function readerOf({ audience, origin, allowed }: CrossOrigin): string | undefined {
  if (audience === 'public') return '*'
  if (audience === 'admin') return undefined
  // The same answer for every origin, so that a cache can share it.
  if (allowed.includes('*')) return '*'
  if (origin === null) return undefined
  return allowed.find((known) => known === origin)
}
