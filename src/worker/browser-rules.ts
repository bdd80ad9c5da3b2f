/** What browsers are told: who may read an answer from another origin, and what they must not guess. */

/** Headers that every answer carries. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000',
}

const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST',
  // Client libraries send headers of their own making. The wildcard does not cover this one.
  'access-control-allow-headers': 'authorization, *',
  'access-control-max-age': '600',
}

export interface CrossOrigin {
  readonly audience: 'public' | 'keyed' | 'admin'
  /** The request's `Origin`, if it came from a page. */
  readonly origin: string | null
  /** Origins the operator allows on keyed endpoints; `*` is every one. Keys are never sent by a browser by itself. */
  readonly allowed: readonly string[]
  /** Whether the browser only asks what it may send. */
  readonly preflight: boolean
}

/** Headers that let a page of another origin read an answer: public ones all, keyed ones those configured. */
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
  // Said to everybody, so that a cache between may keep one answer for all.
  if (allowed.includes('*')) return '*'
  if (origin === null) return undefined
  return allowed.find((known) => known === origin)
}
