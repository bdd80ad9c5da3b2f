import { type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { SIMULATED_ARK_NAME } from '../../verify/snp/anchors.ts'
import { AMD_NAMES, type Product } from '../../verify/snp/product.ts'
import { TCB_LAYOUT, type Tcb } from '../../verify/snp/tcb.ts'
import { SPL_IDS } from '../../verify/snp/vek-extensions.ts'
import { derToPem } from '../../verify/x509/pem.ts'
import {
  issueCertificate,
  pssSigner,
  type CertificateTemplate,
  type Extension,
} from './certificate.ts'
import * as der from './der-writer.ts'
import { issueRevocationList } from './revocation-list.ts'

export { SIMULATED_ARK_NAME }

/** The properties of a simulated chip, used in its certificate and in its reports. */
export interface SimulatedChip {
  readonly product: Product
  readonly kind: 'vcek' | 'vlek'
  /** The 64 bytes of CHIP_ID; on Turin all but the first eight are zero. */
  readonly chipId: Bytes
  readonly tcb: Tcb
  /** The cloud provider of a VLEK, as its certificate names it. */
  readonly cspId: string
  readonly arkName: string
}

export interface SimulatedChain extends SimulatedChip {
  /** VEK, ASK, ARK in PEM, the order of `vcek_chain_pem`. */
  readonly pem: string
  readonly arkSpkiSha256: string
  /** The root's revocation list in DER; it revokes nothing. */
  readonly crl: Bytes
  /** Signs reports. */
  readonly vek: CryptoKey
}

/** Two RSA-4096 key pairs; generating them takes a second or two. */
export interface SimulatedAuthority {
  readonly ark: CryptoKeyPair
  readonly ask: CryptoKeyPair
}

const DAY_MS = 86_400_000
const YEAR_MS = 365 * DAY_MS

const DEFAULT_TCB: Record<Product, Tcb> = {
  milan: { bootloader: 4, tee: 0, snp: 27, microcode: 222 },
  genoa: { bootloader: 10, tee: 0, snp: 27, microcode: 88 },
  turin: { fmc: 1, bootloader: 1, tee: 1, snp: 4, microcode: 71 },
}

/**
 * Makes a chip with a certificate chain of its own, from newly generated keys.
 * @param now milliseconds
 */
export async function makeSimulatedChain(
  now: number,
  wanted: Partial<SimulatedChip> = {},
): Promise<SimulatedChain> {
  return issueSimulatedChain(await makeSimulatedAuthority(), now, wanted)
}

export async function makeSimulatedAuthority(): Promise<SimulatedAuthority> {
  const scheme = {
    name: 'RSA-PSS',
    hash: 'SHA-384',
    modulusLength: 4096,
    publicExponent: Uint8Array.of(1, 0, 1),
  }
  const [ark, ask] = await Promise.all([
    crypto.subtle.generateKey(scheme, true, ['sign', 'verify']),
    crypto.subtle.generateKey(scheme, true, ['sign', 'verify']),
  ])
  return { ark, ask }
}

/** A new chip and its chain under an existing authority. */
export async function issueSimulatedChain(
  authority: SimulatedAuthority,
  now: number,
  wanted: Partial<SimulatedChip> = {},
): Promise<SimulatedChain> {
  const chip = describeChip(wanted)
  const vek = await makeVek()
  const templates = await chainTemplates(chip, { ...authority, vek }, now)
  const root = pssSigner(authority.ark.privateKey)
  const { notBefore: thisUpdate, notAfter: nextUpdate } = templates.ark
  const list = { issuer: chip.arkName, thisUpdate, nextUpdate, serials: [] }
  const [crl, ...certificates] = await Promise.all([
    issueRevocationList(list, root),
    issueCertificate(templates.vek, pssSigner(authority.ask.privateKey)),
    issueCertificate(templates.ask, root),
    issueCertificate(templates.ark, root),
  ])
  return {
    ...chip,
    pem: certificates.map(derToPem).join(''),
    arkSpkiSha256: await sha256Hex(templates.ark.spki),
    crl,
    vek: vek.privateKey,
  }
}

/** A chip key, which signs reports. */
export async function makeVek(): Promise<CryptoKeyPair> {
  const scheme = { name: 'ECDSA', namedCurve: 'P-384' }
  return crypto.subtle.generateKey(scheme, true, ['sign', 'verify'])
}

/** The contents of a chip's three certificates, before they are signed. */
export async function chainTemplates(
  chip: SimulatedChip,
  keys: SimulatedAuthority & { readonly vek: CryptoKeyPair },
  now: number,
): Promise<Record<'vek' | 'ask' | 'ark', CertificateTemplate>> {
  const askName = `SEV-${chip.kind === 'vlek' ? 'VLEK-' : ''}${AMD_NAMES[chip.product]}`
  const validity = { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + 7 * YEAR_MS) }
  return {
    ark: {
      ...validity,
      serial: 0x10000,
      issuer: chip.arkName,
      subject: chip.arkName,
      spki: await exportSpki(keys.ark),
      extensions: authorityExtensions('root'),
    },
    ask: {
      ...validity,
      serial: 0x10001,
      issuer: chip.arkName,
      subject: askName,
      spki: await exportSpki(keys.ask),
      extensions: authorityExtensions('intermediate'),
    },
    vek: {
      ...validity,
      serial: 0,
      issuer: askName,
      subject: `SEV-${chip.kind.toUpperCase()}`,
      spki: await exportSpki(keys.vek),
      extensions: vekExtensions(chip),
    },
  }
}

/** The requested chip, with defaults for unspecified properties. */
export function describeChip(wanted: Partial<SimulatedChip>): SimulatedChip {
  const product = wanted.product ?? 'genoa'
  const chipId = new Uint8Array(64)
  crypto.getRandomValues(product === 'turin' ? chipId.subarray(0, 8) : chipId)
  return {
    product,
    kind: 'vcek',
    chipId: wanted.kind === 'vlek' ? new Uint8Array(64) : chipId,
    tcb: DEFAULT_TCB[product],
    cspId: 'CN=simulated.invalid',
    arkName: SIMULATED_ARK_NAME,
    ...wanted,
  }
}

/** CA:TRUE and certSign, as in AMD's certificates; the root may also sign revocation lists. */
export function authorityExtensions(place: 'root' | 'intermediate'): Extension[] {
  const root = place === 'root'
  const constraints = der.sequence(der.boolean(true), ...(root ? [] : [der.integer(0)]))
  const usage = der.bitString(Uint8Array.of(root ? 0x06 : 0x04), root ? 1 : 2)
  return [
    { id: '2.5.29.15', critical: true, value: usage },
    { id: '2.5.29.19', critical: true, value: constraints },
  ]
}

/** The extensions of AMD's chip certificates: product, patch levels, and the chip or the cloud provider. */
export function vekExtensions(chip: SimulatedChip): Extension[] {
  const turin = chip.product === 'turin'
  return [
    { id: '1.3.6.1.4.1.3704.1.1', value: der.integer(turin ? 1 : 0) },
    { id: '1.3.6.1.4.1.3704.1.2', value: der.ia5String(AMD_NAMES[chip.product]) },
    ...TCB_LAYOUT[chip.product].map(([component]) => ({
      id: SPL_IDS[component],
      value: der.integer(chip.tcb[component] ?? 0),
    })),
    chip.kind === 'vlek'
      ? { id: '1.3.6.1.4.1.3704.1.5', value: der.ia5String(chip.cspId) }
      : { id: '1.3.6.1.4.1.3704.1.4', value: turin ? chip.chipId.slice(0, 8) : chip.chipId },
  ]
}

async function exportSpki(pair: CryptoKeyPair): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey))
}
