import { verify, X509Certificate } from 'node:crypto'
import { Quote, utils, type Collateral } from '@phala/dcap-qvl'
import { copyBytes, equalBytes, fromHex, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { readCertificate } from '../../verify/x509/certificate.ts'
import { readRevocationList } from '../../verify/x509/revocation-list.ts'
import { EvidenceRefused } from './evidence-refused.ts'

/**
 * Authenticates the two revocation lists of a quote's collateral: Intel's root signs the one, the authority of the
 * quote's own chip certificate the other, and both are in date. `@phala/dcap-qvl` (0.3.9) looks certificates up in
 * the lists and takes the lists themselves as they come, which is not enough where a provider hands them over.
 * Throws `EvidenceRefused`.
 */
export function checkRevocationLists(
  quote: Bytes,
  { root_ca_crl: rootList, pck_crl: chipList }: Collateral,
  { rootDer, now }: { readonly rootDer: Buffer; readonly now: number },
): void {
  try {
    const [, authority] = utils.extractCerts(Buffer.from(Quote.parse(quote).rawCertChain()))
    if (authority === undefined) throw new EvidenceRefused('hardware', ['revocation'])
    checkList(asBytes(rootList), rootDer, now)
    checkList(asBytes(chipList), authority, now)
  } catch (cause) {
    if (cause instanceof EvidenceRefused) throw cause
    throw new EvidenceRefused('hardware', ['revocation'], { cause })
  }
}

function checkList(list: Bytes, issuerDer: Buffer, now: number): void {
  const { issuer, signed, signature, thisUpdate, nextUpdate } = readRevocationList(list)
  const authority = readCertificate(copyBytes(issuerDer))
  const key = new X509Certificate(issuerDer).publicKey
  const genuine = equalBytes(issuer, authority.subject) && verify('sha256', signed, key, signature)
  if (!genuine || now < thisUpdate || now > nextUpdate) {
    throw new EvidenceRefused('hardware', ['revocation'])
  }
}

function asBytes(list: number[] | string): Bytes {
  if (typeof list !== 'string') return Uint8Array.from(list)
  try {
    return fromHex(list.toLowerCase())
  } catch {
    throw new MalformedEvidence('revocation list', 'not hex')
  }
}
