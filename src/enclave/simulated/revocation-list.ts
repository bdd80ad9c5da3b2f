import type { Bytes } from '../../protocol/bytes.ts'
import { distinguishedName, sign, type CertificateSigner } from './certificate.ts'
import * as der from './der-writer.ts'

export interface RevocationListTemplate {
  /** The common name of the root. */
  readonly issuer: string
  readonly thisUpdate: Date
  readonly nextUpdate: Date
  /** Serial numbers of revoked authorities. */
  readonly serials: readonly number[]
}

/** A version 2 revocation list in DER (RFC 5280 section 5.1). */
export async function issueRevocationList(
  { issuer, thisUpdate, nextUpdate, serials }: RevocationListTemplate,
  signer: CertificateSigner,
): Promise<Bytes> {
  const revoked = serials.map((serial) => der.sequence(der.integer(serial), der.time(thisUpdate)))
  const content = der.sequence(
    der.integer(1),
    signer.algorithm,
    distinguishedName(issuer),
    der.time(thisUpdate),
    der.time(nextUpdate),
    ...(revoked.length > 0 ? [der.sequence(...revoked)] : []),
  )
  return sign(content, signer)
}
