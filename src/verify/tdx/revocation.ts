import type { Collateral, Quote } from '@phala/dcap-qvl'
import { equalBytes, fromHex, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { readCertificate } from '../x509/certificate.ts'
import { verifyEcdsaSignature } from '../x509/ecdsa-signature.ts'
import { readRevocationList } from '../x509/revocation-list.ts'
import { chipChain } from './chip-chain.ts'

/**
 * Authenticates the two revocation lists of a quote's collateral: one signed by Intel's root, the other by the
 * authority of the quote's own chip certificate, both within their dates. `@phala/dcap-qvl` (0.3.9) looks up
 * certificates in the lists without verifying the lists, which is not enough where a provider supplies them.
 * @returns when the first of them is due to be replaced, in milliseconds since 1970
 * @throws EvidenceRefused `hardware` (`revocation`) when a list is not authentic or not valid
 * @throws MalformedEvidence when a list is not hex
 */
export async function checkRevocationLists(
  quote: Quote,
  { root_ca_crl: rootList, pck_crl: chipList }: Collateral,
  { rootDer, now }: { readonly rootDer: Bytes; readonly now: number },
): Promise<number> {
  try {
    return Math.min(
      await checkList(asBytes(rootList), rootDer, now),
      await checkList(asBytes(chipList), chipChain(quote).authority, now),
    )
  } catch (cause) {
    if (cause instanceof EvidenceRefused) throw cause
    throw new EvidenceRefused('hardware', ['revocation'], { cause })
  }
}

async function checkList(list: Bytes, issuerDer: Bytes, now: number): Promise<number> {
  const { issuer, signed, signature, thisUpdate, nextUpdate } = readRevocationList(list)
  const { subject, spki } = readCertificate(issuerDer)
  const genuine =
    equalBytes(issuer, subject) &&
    (await verifyEcdsaSignature({ signed, signature }, spki, 'P-256'))
  if (!genuine || now < thisUpdate || now > nextUpdate) {
    throw new EvidenceRefused('hardware', ['revocation'])
  }
  return nextUpdate
}

function asBytes(list: number[] | string): Bytes {
  if (typeof list !== 'string') return Uint8Array.from(list)
  try {
    return fromHex(list.toLowerCase())
  } catch {
    throw new MalformedEvidence('revocation list', 'not hex')
  }
}
