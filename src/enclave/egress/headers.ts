import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { hopByHop } from '../../protocol/hop-by-hop.ts'

/** Headers of the link, and what the worker's runtime adds; a provider must neither see nor set them. */
const INTERNAL_HEADER = /^(x-cmr-|cf-)/

/** What goes to the provider. A body is asked for as it is, so that digests cover what was sent. */
export function requestHeaders(received: IncomingHttpHeaders): OutgoingHttpHeaders {
  const { host: _host, expect: _expect, ...rest } = endToEnd(received)
  return { ...rest, 'accept-encoding': 'identity' }
}

/** What comes back of the provider's headers. */
export function endToEnd(received: IncomingHttpHeaders): OutgoingHttpHeaders {
  const ofConnection = hopByHop(received.connection)
  const kept = Object.entries(received).filter(
    ([name]) => !ofConnection(name) && !INTERNAL_HEADER.test(name),
  )
  return Object.fromEntries(kept)
}
