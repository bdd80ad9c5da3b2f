/**
 * A provider's `base_url` as everything else is appended to it, and as worker and daemon name it to each other: without trailing
 * slashes, and with its host and path in the ASCII form of a URL, since a header carries no other.
 */
export function bareBaseUrl(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}
