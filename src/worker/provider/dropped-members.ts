import { isNull } from '../json/scan.ts'
import type { ChatRequest } from './chat-request.ts'
import type { Route } from './route.ts'

/**
 * The response header that names the request members that were sent to no provider, so that their lack of effect is visible.
 */
const HEADER = 'x-service-dropped-members'

/** Maximum number of names in the header. */
const MAX_NAMES = 32
const MAX_NAME_CHARACTERS = 64

/**
 * The header that names the members that at least one of these routes drops, and those that the decoder has dropped already;
 * empty where all were forwarded. Names are percent-encoded where needed; a `*` stands for those beyond 32.
 */
export function droppedMembersHeader(
  { chat, dropped: before }: { readonly chat: ChatRequest; readonly dropped: readonly string[] },
  routes: readonly Route[],
): Readonly<Record<string, string>> {
  const { bytes, otherMembers } = chat
  const here = [...otherMembers].flatMap(([name, range]) => {
    const forwarded = routes.every((route) => isForwarded(name, route))
    return forwarded || isNull(bytes, range) ? [] : [name]
  })
  return droppedNamesHeader([...before, ...here])
}

/** The header for these names. */
export function droppedNamesHeader(names: readonly string[]): Readonly<Record<string, string>> {
  const dropped = [...new Set(names)].map(printable)
  if (dropped.length === 0) return {}
  const more = dropped.length > MAX_NAMES ? ['*'] : []
  return { [HEADER]: [...dropped.slice(0, MAX_NAMES), ...more].join(', ') }
}

/**
 * Which of these headers of the service a request has. An endpoint where they have no effect reports them like dropped
 * members; it does not refuse them, because clients send the same headers to all endpoints.
 */
export function unusedHeaders(headers: Headers, names: readonly string[]): readonly string[] {
  return names.filter((name) => headers.has(name))
}

/**
 * Whether a route forwards a member. An OCR route is also sent `skip_special_tokens`, with a fixed value (see docs/api.md).
 */
function isForwarded(name: string, { config }: Route): boolean {
  return config.forward.includes(name) || (config.ocr && name === 'skip_special_tokens')
}

function printable(name: string): string {
  return encodeURIComponent(name.slice(0, MAX_NAME_CHARACTERS).toWellFormed())
}
