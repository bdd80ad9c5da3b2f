// The package, which everything but Node needs: `@phala/dcap-qvl` takes no other bytes.
import { Buffer } from 'buffer'
import { utils, type Quote } from '@phala/dcap-qvl'
import type { Bytes } from '../../protocol/bytes.ts'

/** Bytes in the form in which `@phala/dcap-qvl` takes certificates. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes)
}

/**
 * The certificates in a quote, in DER: chip, authority, root.
 * @throws Error when the quote carries none of that kind
 */
export function chipChain(quote: Quote): { readonly chip: Buffer; readonly authority: Bytes } {
  const [chip, authority] = utils.extractCerts(asBuffer(quote.rawCertChain()))
  if (chip === undefined || authority === undefined) throw new Error('no chain of certificates')
  return { chip, authority: new Uint8Array(authority) }
}
