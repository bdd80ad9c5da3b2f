import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { hopByHop } from '../../protocol/hop-by-hop.ts'

/** Headers of the link, and those that the worker's runtime adds; a provider must neither see nor set them. */
const INTERNAL_HEADER = /^(x-cmr-|cf-)/

/**
 * The headers sent to the provider. The body is requested without compression, so that digests cover the bytes sent.
 */
export function requestHeaders(received: IncomingHttpHeaders): OutgoingHttpHeaders {
  const { host: _host, expect: _expect, ...rest } = endToEnd(received)
  return { ...rest, 'accept-encoding': 'identity' }
}

/** The provider's headers that are passed on. */
export function endToEnd(received: IncomingHttpHeaders): OutgoingHttpHeaders {
  const ofConnection = hopByHop(received.connection)
  const kept: OutgoingHttpHeaders = {}
  for (const name in received) {
    if (!ofConnection(name) && !INTERNAL_HEADER.test(name)) kept[name] = received[name]
  }
  return kept
}
