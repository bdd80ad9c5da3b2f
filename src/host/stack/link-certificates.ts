// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

/** A certificate and the private key it belongs to, PEM (PKCS #8). They exist in memory only. */
export interface KeyPair {
  readonly certPem: string
  readonly keyPem: string
}

/** Both ends of one link between a worker and its daemon; each end trusts exactly the other's certificate. */
export interface LinkCertificates {
  readonly server: KeyPair
  readonly worker: KeyPair
}

/** The name in the daemon's link certificate; it does not resolve. */
export const LINK_HOST = 'enclave.link.internal'

/** The name in the ledger process's link certificate. */
export const LEDGER_HOST = 'ledger.link.internal'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
/** The certificates are used as long as the supervisor runs; they only need to be valid for longer. */
const TEN_YEARS_MS = 10 * 365 * 86_400_000
const CLOCK_SLACK_MS = 86_400_000

/** @param host the name in the server's certificate */
export async function makeLinkCertificates(
  now: number,
  host: string = LINK_HOST,
): Promise<LinkCertificates> {
  const [server, worker] = await Promise.all([
    selfSigned(host, ExtendedKeyUsage.serverAuth, now),
    selfSigned('worker.link.internal', ExtendedKeyUsage.clientAuth, now),
  ])
  return { server, worker }
}

async function selfSigned(host: string, usage: ExtendedKeyUsage, now: number): Promise<KeyPair> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${host}`,
    keys,
    signingAlgorithm: ALGORITHM,
    notBefore: new Date(now - CLOCK_SLACK_MS),
    notAfter: new Date(now + TEN_YEARS_MS),
    extensions: [
      new SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
      new ExtendedKeyUsageExtension([usage]),
    ],
  })
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
  return { certPem: `${certificate.toString('pem')}\n`, keyPem: pemOf(pkcs8) }
}

function pemOf(pkcs8: ArrayBuffer): string {
  const lines =
    Buffer.from(pkcs8)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
}
