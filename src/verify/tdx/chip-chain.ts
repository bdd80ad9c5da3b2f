// The npm package `buffer`, which is needed outside Node: `@phala/dcap-qvl` accepts only its Buffers.
import { Buffer } from 'buffer'
import { utils, type Quote } from '@phala/dcap-qvl'
import type { Bytes } from '../../protocol/bytes.ts'

/** Bytes in the form that `@phala/dcap-qvl` accepts. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes)
}

/**
 * The chip's certificate and its authority's, from a quote, in DER.
 * @throws Error when the quote contains no certificates of that kind
 */
export function chipChain(quote: Quote): { readonly chip: Buffer; readonly authority: Bytes } {
  const [chip, authority] = utils.extractCerts(asBuffer(quote.rawCertChain()))
  if (chip === undefined || authority === undefined) throw new Error('no chain of certificates')
  return { chip, authority: new Uint8Array(authority) }
}
