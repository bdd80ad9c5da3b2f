// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'

export interface CertificatePair {
  readonly certPem: string
  readonly keyPem: string
}

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A self-signed pair as the supervisor makes them for the two ends of the link. */
export async function makeCertificatePair(name: string): Promise<CertificatePair> {
  const keys = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: SCHEME,
    keys,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: name }])],
  })
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
  return {
    certPem: certificate.toString('pem'),
    keyPem: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY'),
  }
}
