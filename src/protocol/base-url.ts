/**
 * Normalises a provider's `base_url`, for appending paths and for the names that worker and daemon exchange: without
 * trailing slashes, and with host and path in the ASCII form of a URL, because a header cannot carry any other.
 */
export function bareBaseUrl(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}
