import { hopByHop } from '../../protocol/hop-by-hop.ts'

/** Headers by name in lower case. */
export type HeaderValues = Record<string, string | string[] | undefined>

/** Headers of the link, and headers that the worker's runtime adds. A provider must neither see nor set them. */
const INTERNAL_HEADER = /^(x-cmr-|cf-)/

/** @param preambleBytes how many bytes at the start of the received body are not for the provider */
export function requestHeaders(received: HeaderValues, preambleBytes = 0): HeaderValues {
  const { host: _host, expect: _expect, ...rest } = endToEnd(received)
  const length = headerText(rest, 'content-length')
  return {
    ...rest,
    'accept-encoding': 'identity',
    ...(preambleBytes > 0 &&
      length !== undefined && { 'content-length': String(Number(length) - preambleBytes) }),
  }
}

/** The value of a header; the values of repeated lines are joined with commas. */
export function headerText(headers: HeaderValues, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** The end-to-end headers, without internal ones: those that are passed on. */
export function endToEnd(received: HeaderValues): HeaderValues {
  const ofConnection = hopByHop(headerText(received, 'connection'))
  const kept: HeaderValues = {}
  for (const name in received) {
    if (!ofConnection(name) && !INTERNAL_HEADER.test(name)) kept[name] = received[name]
  }
  return kept
}
