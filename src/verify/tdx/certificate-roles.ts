import { utils, type Collateral, type Quote } from '@phala/dcap-qvl'
import { copyBytes, equalBytes, utf8, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { readAuthority } from '../x509/authority.ts'
import { readCertificate, type Certificate } from '../x509/certificate.ts'
import { asBuffer } from './chip-chain.ts'

const CHIP = 'Intel SGX PCK Certificate'
const CHIP_AUTHORITIES: readonly string[] = [
  'Intel SGX PCK Platform CA',
  'Intel SGX PCK Processor CA',
]
const RATINGS_SIGNER = 'Intel SGX TCB Signing'

/**
 * Requires that each certificate is used for the purpose for which Intel issued it, like Intel's Quote Verification
 * Library: one of Intel's two authorities certified the chip, and the root certified the signer of TCB info and enclave
 * identity. `@phala/dcap-qvl` (0.3.9) verifies the signatures of chains of any length, whoever the signers are: with
 * the stolen key of one old chip, an attacker could certify other chips, or sign a good rating for it.
 * @returns all of these certificates except the root
 * @throws EvidenceRefused `hardware` (`certificate_roles`) when a certificate has another role or cannot be parsed
 */
export function requireCertificateRoles(
  quote: Quote,
  collateral: Pick<Collateral, 'tcb_info_issuer_chain' | 'qe_identity_issuer_chain'>,
  rootDer: Bytes,
): readonly Certificate[] {
  const { tcb_info_issuer_chain: ofRating, qe_identity_issuer_chain: ofEnclave } = collateral
  try {
    const root = readCertificate(rootDer)
    const chip = belowRoot(quote.rawCertChain(), root)
    const signers = [ofRating, ofEnclave].map((pem) => belowRoot(utf8(pem), root))
    if (isChip(chip, root) && signers.every((signer) => isSigner(signer, root))) {
      return [chip, ...signers].flat()
    }
  } catch (cause) {
    throw new EvidenceRefused('hardware', ['certificate_roles'], { cause })
  }
  throw new EvidenceRefused('hardware', ['certificate_roles'])
}

/** The certificates of a PEM chain without the root, which is usually the last one. */
function belowRoot(pem: Uint8Array, root: Certificate): Certificate[] {
  const chain = utils.extractCerts(asBuffer(pem)).map((one) => readCertificate(copyBytes(one)))
  const last = chain.at(-1)
  return last !== undefined && equalBytes(last.spki, root.spki) ? chain.slice(0, -1) : chain
}

function isChip([chip, authority, ...more]: readonly Certificate[], root: Certificate): boolean {
  if (chip === undefined || authority === undefined || more.length > 0) return false
  return (
    chip.subjectName === CHIP &&
    CHIP_AUTHORITIES.includes(authority.subjectName) &&
    readAuthority(authority).ca &&
    equalBytes(chip.issuer, authority.subject) &&
    equalBytes(authority.issuer, root.subject)
  )
}

function isSigner([signer, ...more]: readonly Certificate[], root: Certificate): boolean {
  if (signer === undefined || more.length > 0) return false
  return signer.subjectName === RATINGS_SIGNER && equalBytes(signer.issuer, root.subject)
}
