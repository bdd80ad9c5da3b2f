// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import {
  BasicConstraintsExtension,
  PemConverter,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

/** A certificate authority for tests, with a root and nothing between. */
export interface TestAuthority {
  readonly rootPem: string
  /** Signs what a PKCS #10 request (PEM, DER or base64url) asks for. @returns leaf and root, PEM */
  sign(csr: string): Promise<string>
  /** Makes a server's key and its certificate for a DNS name. */
  issue(host: string): Promise<{ readonly certPem: string; readonly keyPem: string }>
}

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const SUBJECT_ALTERNATIVE_NAME = '2.5.29.17'
const DAY_MS = 86_400_000

export async function makeTestAuthority(): Promise<TestAuthority> {
  const keys = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
  const dates = {
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + 90 * DAY_MS),
  }
  const root = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test Authority',
    keys,
    signingAlgorithm: SCHEME,
    ...dates,
    extensions: [new BasicConstraintsExtension(true, 0, true)],
  })
  return {
    rootPem: root.toString('pem'),
    async sign(csr) {
      const request = new Pkcs10CertificateRequest(csr)
      if (!(await request.verify())) throw new Error('the request is not signed by its key')
      const names = request.getExtensions(SUBJECT_ALTERNATIVE_NAME)
      const leaf = await X509CertificateGenerator.create({
        subject: request.subject,
        issuer: root.subject,
        publicKey: request.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: SCHEME,
        ...dates,
        extensions: names,
      })
      return `${leaf.toString('pem')}\n${root.toString('pem')}\n`
    },
    async issue(host) {
      const pair = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
      const leaf = await X509CertificateGenerator.create({
        subject: `CN=${host}`,
        issuer: root.subject,
        publicKey: pair.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: SCHEME,
        ...dates,
        extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: host }])],
      })
      const pkcs8 = await crypto.subtle.exportKey('pkcs8', pair.privateKey)
      return {
        certPem: `${leaf.toString('pem')}\n`,
        keyPem: `${PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`,
      }
    },
  }
}
