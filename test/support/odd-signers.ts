import type { CertificateSigner } from '../../src/enclave/simulated/certificate.ts'
import * as der from '../../src/enclave/simulated/der-writer.ts'
import type { Bytes } from '../../src/protocol/bytes.ts'

/** Signers of certificates by schemes that AMD does not use, with the key of one that it does. */

const SHA_256 = '2.16.840.1.101.3.4.2.1'
const SHA_384 = '2.16.840.1.101.3.4.2.2'
const RSA_WITH_SHA_384 = '1.2.840.113549.1.1.12'

/** RSASSA-PKCS1-v1_5 with SHA-384. */
export async function pkcs1Signer(key: CryptoKey): Promise<CertificateSigner> {
  const scheme = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-384' }
  return {
    algorithm: der.sequence(der.objectId(RSA_WITH_SHA_384), der.nothing()),
    sign: await signWith(key, scheme, scheme),
  }
}

/** RSASSA-PSS with SHA-256 in both places. */
export async function pssSha256Signer(key: CryptoKey): Promise<CertificateSigner> {
  const scheme = { name: 'RSA-PSS', hash: 'SHA-256' }
  return {
    algorithm: pssAlgorithm(SHA_256, SHA_256, 48),
    sign: await signWith(key, scheme, { ...scheme, saltLength: 48 }),
  }
}

/** RSASSA-PSS with SHA-384 and a salt of another length. */
export async function shortSaltSigner(key: CryptoKey): Promise<CertificateSigner> {
  const scheme = { name: 'RSA-PSS', hash: 'SHA-384' }
  return {
    algorithm: pssAlgorithm(SHA_384, SHA_384, 32),
    sign: await signWith(key, scheme, { ...scheme, saltLength: 32 }),
  }
}

/** A signature as AMD makes it that claims MGF1 with SHA-256. */
export async function otherMaskSigner(key: CryptoKey): Promise<CertificateSigner> {
  const scheme = { name: 'RSA-PSS', hash: 'SHA-384' }
  return {
    algorithm: pssAlgorithm(SHA_384, SHA_256, 48),
    sign: await signWith(key, scheme, { ...scheme, saltLength: 48 }),
  }
}

const identifier = (id: string) => der.sequence(der.objectId(id), der.nothing())

function pssAlgorithm(hash: string, mask: string, salt: number): Bytes {
  const mgf1 = der.sequence(der.objectId('1.2.840.113549.1.1.8'), identifier(mask))
  return der.sequence(
    der.objectId('1.2.840.113549.1.1.10'),
    der.sequence(
      der.explicit(0, identifier(hash)),
      der.explicit(1, mgf1),
      der.explicit(2, der.integer(salt)),
      der.explicit(3, der.integer(1)),
    ),
  )
}

async function signWith(
  key: CryptoKey,
  scheme: RsaHashedImportParams,
  parameters: AlgorithmIdentifier | RsaPssParams,
): Promise<(data: Bytes) => Promise<Bytes>> {
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', key)
  const imported = await crypto.subtle.importKey('pkcs8', pkcs8, scheme, false, ['sign'])
  return async (data) => new Uint8Array(await crypto.subtle.sign(parameters, imported, data))
}
