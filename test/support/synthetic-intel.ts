// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 needs the polyfill to be there
import 'reflect-metadata'
import { createHash } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import * as der from '../../src/enclave/simulated/der-writer.ts'
import { copyBytes, fromHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'

/** A root, a platform authority and a platform as Intel has them, from keys made here: nothing outside tests trusts it. */
export interface SyntheticIntel {
  readonly rootDer: Bytes
  /** Chip certificate, authority, root in PEM. */
  readonly chipChainPem: string
  readonly signingChainPem: string
  readonly authorityChainPem: string
  /** Signs the quoting enclave's report. */
  readonly chipKey: CryptoKey
  /** Signs TCB info and enclave identity. */
  readonly signingKey: CryptoKey
  readonly rootList: Bytes
  readonly chipList: Bytes
  /** A chip that no authority certified, but the other chip's key: what its thief could make. */
  readonly forgedChip: Pick<SyntheticIntel, 'chipChainPem' | 'chipKey' | 'chipList'>
}

export interface Revocations {
  /** Revokes the chip certificate. */
  readonly chip?: boolean
  /** Whose key signs the authority's list. */
  readonly listSignedBy?: 'authority' | 'stranger'
  /** The certificate that ended a minute ago. */
  readonly ended?: 'chip' | 'authority' | 'signing'
  /** The provisioning enclaves that the chip certificate names, in hex; one unless given. */
  readonly pceIds?: readonly string[]
}

export const FMSPC = '90C06F000000'
export const CPU_SVN = 3
export const PCE_SVN = 11

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const CHIP_SERIAL = '0c'
const HOUR_MS = 3_600_000

export async function makeSyntheticIntel(
  now: number,
  revocations: Revocations = {},
): Promise<SyntheticIntel> {
  const [root, authority, chip, signing, stranger, forged] = await Promise.all(
    Array.from({ length: 6 }, () => crypto.subtle.generateKey(SCHEME, true, ['sign', 'verify'])),
  )
  if (!root || !authority || !chip || !signing || !stranger || !forged) throw new Error('no keys')
  const ROOT = 'CN=Synthetic SGX Root CA'
  const PLATFORM = 'CN=Intel SGX PCK Platform CA'
  const CHIP = 'CN=Intel SGX PCK Certificate'
  const SIGNING = 'CN=Intel SGX TCB Signing'
  const names = { chip: CHIP, authority: PLATFORM, signing: SIGNING }
  const issue = issuer(now, revocations.ended && names[revocations.ended])
  const rootCert = await issue(ROOT, ROOT, root, root, [authorityMark()])
  const authorityCert = await issue(PLATFORM, ROOT, authority, root, [authorityMark()])
  const ofChip = [
    new x509.Extension('1.2.840.113741.1.13.1', false, sgxExtension(revocations.pceIds)),
  ]
  const chipCert = await issue(CHIP, PLATFORM, chip, authority, ofChip)
  const forgedCert = await issue(CHIP, CHIP, forged, chip, ofChip)
  const signingCert = await issue(SIGNING, ROOT, signing, root, [])
  const listKey = revocations.listSignedBy === 'stranger' ? stranger : authority
  const revoked = revocations.chip ? [chipCert.serialNumber] : []
  return {
    rootDer: new Uint8Array(rootCert.rawData),
    chipChainPem: pem(chipCert, authorityCert, rootCert),
    signingChainPem: pem(signingCert, rootCert),
    authorityChainPem: pem(authorityCert, rootCert),
    chipKey: chip.privateKey,
    signingKey: signing.privateKey,
    rootList: await revocationList(ROOT, root, [], now),
    chipList: await revocationList(PLATFORM, listKey, revoked, now),
    forgedChip: {
      chipChainPem: pem(forgedCert, chipCert, authorityCert, rootCert),
      chipKey: forged.privateKey,
      chipList: await revocationList(CHIP, chip, [], now),
    },
  }
}

function issuer(now: number, ended: string | undefined) {
  let serial = 10
  return (
    subject: string,
    by: string,
    keys: CryptoKeyPair,
    byKeys: CryptoKeyPair,
    extensions: x509.Extension[],
  ) =>
    x509.X509CertificateGenerator.create({
      serialNumber: subject.includes('PCK Certificate') ? CHIP_SERIAL : String(serial++),
      subject,
      issuer: by,
      notBefore: new Date(now - HOUR_MS),
      notAfter: new Date(subject === ended ? now - 60_000 : now + 24 * HOUR_MS),
      signingAlgorithm: SCHEME,
      publicKey: keys.publicKey,
      signingKey: byKeys.privateKey,
      extensions: extensions.length > 0 ? extensions : [new x509.BasicConstraintsExtension(false)],
    })
}

function authorityMark(): x509.Extension {
  return new x509.BasicConstraintsExtension(true, undefined, true)
}

function pem(...certificates: x509.X509Certificate[]): string {
  return certificates.map((certificate) => `${certificate.toString('pem')}\n`).join('')
}

async function revocationList(
  issuerName: string,
  keys: CryptoKeyPair,
  serials: readonly string[],
  now: number,
): Promise<Bytes> {
  const list = await x509.X509CrlGenerator.create({
    issuer: issuerName,
    thisUpdate: new Date(now - HOUR_MS),
    nextUpdate: new Date(now + HOUR_MS),
    signingAlgorithm: SCHEME,
    signingKey: keys.privateKey,
    entries: serials.map((serialNumber) => ({ serialNumber, revocationDate: new Date(now) })),
  })
  return new Uint8Array(list.rawData)
}

const id = (suffix: string) => der.objectId(`1.2.840.113741.1.13.1.${suffix}`)

/** What Intel says of a chip in its certificate: patch levels, family and model. */
function sgxExtension(pceIds: readonly string[] = ['0000']): Bytes {
  const components = Array.from({ length: 16 }, (_, index) =>
    der.sequence(id(`2.${index + 1}`), der.integer(CPU_SVN)),
  )
  const tcb = der.sequence(
    ...components,
    der.sequence(id('2.17'), der.integer(PCE_SVN)),
    der.sequence(id('2.18'), der.octetString(new Uint8Array(16).fill(CPU_SVN))),
  )
  return der.sequence(
    der.sequence(id('1'), der.octetString(new Uint8Array(16))),
    der.sequence(id('2'), tcb),
    ...pceIds.map((pceId) => der.sequence(id('3'), der.octetString(fromHex(pceId)))),
    der.sequence(id('4'), der.octetString(copyBytes(Buffer.from(FMSPC, 'hex')))),
    der.sequence(id('5'), Uint8Array.of(0x0a, 1, 0)),
  )
}

export async function signRaw(key: CryptoKey, bytes: Bytes | string): Promise<Bytes> {
  const input = typeof bytes === 'string' ? utf8(bytes) : bytes
  return new Uint8Array(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, input))
}

export function sha256Of(...parts: readonly Uint8Array[]): Bytes {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return copyBytes(hash.digest())
}
