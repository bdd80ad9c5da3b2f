import { hopByHop } from '../../protocol/hop-by-hop.ts'

/** Headers by name in lower case. */
export type HeaderValues = Record<string, string | string[] | undefined>

/** Headers of the link, and those that the worker's runtime adds; a provider must neither see nor set them. */
const INTERNAL_HEADER = /^(x-cmr-|cf-)/

/**
 * The headers sent to the provider. The body is requested without compression, so that digests cover the bytes sent.
 * @param aheadBytes how much of the received body is not for the provider
 */
export function requestHeaders(received: HeaderValues, aheadBytes = 0): HeaderValues {
  const { host: _host, expect: _expect, ...rest } = endToEnd(received)
  const length = headerText(rest, 'content-length')
  return {
    ...rest,
    'accept-encoding': 'identity',
    ...(aheadBytes > 0 &&
      length !== undefined && { 'content-length': String(Number(length) - aheadBytes) }),
  }
}

/** The value of a header, those of several lines as one. */
export function headerText(headers: HeaderValues, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** The headers that are passed on. */
export function endToEnd(received: HeaderValues): HeaderValues {
  const ofConnection = hopByHop(headerText(received, 'connection'))
  const kept: HeaderValues = {}
  for (const name in received) {
    if (!ofConnection(name) && !INTERNAL_HEADER.test(name)) kept[name] = received[name]
  }
  return kept
}
