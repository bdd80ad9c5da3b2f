import type { TLSSocket } from 'node:tls'
import { copyBytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { readChildren } from '../../verify/x509/der.ts'
import { readSignedStructure } from '../../verify/x509/certificate.ts'

/** Index of the key in a version 3 TBSCertificate: version, serial, algorithm, issuer, validity, subject, key. */
const SPKI_INDEX = 6

/**
 * SHA-256 over the SubjectPublicKeyInfo of the peer's certificate, exactly as encoded in it. Undefined where the
 * peer's certificate is missing or cannot be parsed.
 */
export async function peerSpkiSha256(socket: TLSSocket): Promise<string | undefined> {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return undefined
  try {
    const { content } = readSignedStructure(copyBytes(certificate.raw))
    const spki = readChildren(content)[SPKI_INDEX]
    return spki && (await sha256Hex(spki.whole))
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}
