// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import { createPrivateKey, createPublicKey, randomBytes, X509Certificate } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import type { DaemonTls, TlsMaterial } from '../../protocol/boot.ts'
import { copyBytes, toHex } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'

const DAY_MS = 86_400_000

/** Clients trust the key through the envelope, so the dates only need to be plausible. */
const VALIDITY_DAYS = 397

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/**
 * Generates a P-256 key and a self-signed certificate for the loopback names and the given domains. The key leaves
 * this process only through the supervisor's IPC channel, for the listener that terminates TLS.
 */
export async function makeTlsIdentity(domains: readonly string[], now: Date): Promise<DaemonTls> {
  const keys = await crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${domains[0] ?? 'localhost'}`,
    serialNumber: toHex(serialNumber()),
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter: new Date(now.getTime() + VALIDITY_DAYS * DAY_MS),
    signingAlgorithm: SCHEME,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...domains.map((value) => ({ type: 'dns' as const, value })),
        { type: 'dns', value: 'localhost' },
        { type: 'ip', value: '127.0.0.1' },
        { type: 'ip', value: '::1' },
      ]),
    ],
  })
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey)
  const certPem = `${certificate.toString('pem')}\n`
  const keyPem = `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`
  return { certPem, keyPem, spkiSha256: await spkiDigest(certPem) }
}

/** A positive, non-zero serial number (RFC 5280 section 4.1.2.2). */
function serialNumber(): Uint8Array {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40
  return bytes
}

/**
 * Restores an identity from a key and its certificate.
 * @throws Error when they do not belong together
 */
export async function adoptTlsIdentity(material: TlsMaterial): Promise<DaemonTls> {
  const certificate = new X509Certificate(material.certPem)
  if (!certificate.checkPrivateKey(createPrivateKey(material.keyPem))) {
    throw new Error('the TLS certificate does not belong to the TLS key')
  }
  return { ...material, spkiSha256: await spkiDigest(material.certPem) }
}

/** SHA-256 of the leaf certificate's SubjectPublicKeyInfo in DER, lowercase hex. */
export async function spkiDigest(certPem: string): Promise<string> {
  const key = createPublicKey(certPem)
  return sha256Hex(copyBytes(key.export({ type: 'spki', format: 'der' })))
}
