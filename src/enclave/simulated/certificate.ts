import type { Bytes } from '../../protocol/bytes.ts'
import * as der from './der-writer.ts'

/** Certificates of the form that AMD issues, for the simulated platform. */

export interface Extension {
  readonly id: string
  readonly critical?: boolean
  /** Content of the OCTET STRING. */
  readonly value: Bytes
}

export interface CertificateTemplate {
  readonly serial: number
  readonly issuer: string
  readonly subject: string
  readonly notBefore: Date
  readonly notAfter: Date
  /** SubjectPublicKeyInfo in DER. */
  readonly spki: Bytes
  readonly extensions: readonly Extension[]
}

export interface CertificateSigner {
  /** AlgorithmIdentifier in DER, as part of the signed data and beside the signature. */
  readonly algorithm: Bytes
  sign(data: Bytes): Promise<Bytes>
}

const SHA_384 = der.sequence(der.objectId('2.16.840.1.101.3.4.2.2'), der.nothing())

/**
 * RSASSA-PSS with SHA-384, MGF1 with SHA-384 and 48 bytes of salt, with an explicit trailer field as AMD encodes it.
 */
const PSS_SHA_384 = der.sequence(
  der.objectId('1.2.840.113549.1.1.10'),
  der.sequence(
    der.explicit(0, SHA_384),
    der.explicit(1, der.sequence(der.objectId('1.2.840.113549.1.1.8'), SHA_384)),
    der.explicit(2, der.integer(48)),
    der.explicit(3, der.integer(1)),
  ),
)

/** Signs like AMD's keys; the key must be an RSA-PSS key with SHA-384. */
export function pssSigner(privateKey: CryptoKey): CertificateSigner {
  return {
    algorithm: PSS_SHA_384,
    sign: async (data) =>
      new Uint8Array(
        await crypto.subtle.sign({ name: 'RSA-PSS', saltLength: 48 }, privateKey, data),
      ),
  }
}

/** A version 3 certificate in DER (RFC 5280 section 4.1). */
export async function issueCertificate(
  template: CertificateTemplate,
  signer: CertificateSigner,
): Promise<Bytes> {
  return sign(
    der.sequence(
      der.explicit(0, der.integer(2)),
      der.integer(template.serial),
      signer.algorithm,
      distinguishedName(template.issuer),
      der.sequence(der.time(template.notBefore), der.time(template.notAfter)),
      distinguishedName(template.subject),
      template.spki,
      der.explicit(3, der.sequence(...template.extensions.map(extension))),
    ),
    signer,
  )
}

/** Wraps the data to be signed into the outer SEQUENCE with its signature. */
export async function sign(toBeSigned: Bytes, signer: CertificateSigner): Promise<Bytes> {
  return der.sequence(toBeSigned, signer.algorithm, der.bitString(await signer.sign(toBeSigned)))
}

/** The name in AMD's certificates with another organisation, so that these cannot be mistaken for AMD's. */
export function distinguishedName(commonName: string): Bytes {
  const attributes: readonly [string, string][] = [
    ['2.5.4.11', 'Engineering'],
    ['2.5.4.10', 'Simulated Platform, not AMD'],
    ['2.5.4.3', commonName],
  ]
  return der.sequence(
    ...attributes.map(([id, text]) =>
      der.setOf(der.sequence(der.objectId(id), der.utf8String(text))),
    ),
  )
}

function extension({ id, critical, value }: Extension): Bytes {
  const flag = critical === true ? [der.boolean(true)] : []
  return der.sequence(der.objectId(id), ...flag, der.octetString(value))
}
