// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } from '@peculiar/x509'
import { copyBytes } from '../../protocol/bytes.ts'

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A certificate request (PKCS #10, PEM) for these domains, with a P-256 key in PKCS #8. */
export async function makeCsr(keyPem: string, domains: readonly string[]): Promise<string> {
  const privateKey = createPrivateKey(keyPem)
  const keys = {
    privateKey: await imported(privateKey, 'pkcs8', ['sign']),
    publicKey: await imported(createPublicKey(privateKey), 'spki', ['verify']),
  }
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: `CN=${domains[0] ?? ''}`,
    keys,
    signingAlgorithm: SCHEME,
    extensions: [
      new SubjectAlternativeNameExtension(
        domains.map((value) => ({ type: 'dns' as const, value })),
      ),
    ],
  })
  return `${request.toString('pem')}\n`
}

function imported(
  key: KeyObject,
  format: 'pkcs8' | 'spki',
  uses: ('sign' | 'verify')[],
): Promise<CryptoKey> {
  const der = copyBytes(key.export({ type: format, format: 'der' }))
  return crypto.subtle.importKey(format, der, SCHEME, true, uses)
}
