import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'

/** Headers of one connection, which no forwarder may pass on (RFC 9110 section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers of the link, and what the worker's runtime adds; a provider must neither see nor set them. */
const INTERNAL_HEADER = /^(x-cmr-|cf-)/

/** What goes to the provider. A body is asked for as it is, so that digests cover what was sent. */
export function requestHeaders(received: IncomingHttpHeaders): OutgoingHttpHeaders {
  const { host: _host, expect: _expect, ...rest } = endToEnd(received)
  return { ...rest, 'accept-encoding': 'identity' }
}

/** What comes back of the provider's headers. */
export function endToEnd(received: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = new Set((received.connection ?? '').toLowerCase().split(/\s*,\s*/))
  const kept = Object.entries(received).filter(
    ([name]) => !HOP_BY_HOP.has(name) && !named.has(name) && !INTERNAL_HEADER.test(name),
  )
  return Object.fromEntries(kept)
}
