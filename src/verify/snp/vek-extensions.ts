import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { Certificate } from '../x509/certificate.ts'
import { malformed, readDer, readSmallInteger, TAG } from '../x509/der.ts'
import { AMD_NAMES, type Product } from './product.ts'
import { TCB_LAYOUT, type Tcb, type TcbComponent } from './tcb.ts'

/** AMD's statements on the chip in the certificate of its key (AMD 57230, extensions under 3704.1). */
export interface VekClaims {
  readonly tcb: Tcb
  /** The chip id of a VCEK: 64 bytes, on Turin 8. */
  readonly hwid: Bytes | undefined
  /** The cloud provider of a VLEK. */
  readonly cspId: string | undefined
}

export type VekKind = 'vcek' | 'vlek'

const AMD_ARC = '1.3.6.1.4.1.3704.'
const STRUCT_VERSION = `${AMD_ARC}1.1`
const PRODUCT_NAME = `${AMD_ARC}1.2`
const HWID = `${AMD_ARC}1.4`
const CSP_ID = `${AMD_ARC}1.5`

/** The extensions with the patch levels. */
export const SPL_IDS: Record<TcbComponent, string> = {
  bootloader: `${AMD_ARC}1.3.1`,
  tee: `${AMD_ARC}1.3.2`,
  snp: `${AMD_ARC}1.3.3`,
  microcode: `${AMD_ARC}1.3.8`,
  fmc: `${AMD_ARC}1.3.9`,
}

const RESERVED_SPL_IDS = [4, 5, 6, 7].map((arc) => `${AMD_ARC}1.3.${arc}`)

const STRUCT_VERSIONS: Record<Product, number> = { milan: 0, genoa: 0, turin: 1 }
const HWID_BYTES: Record<Product, number> = { milan: 64, genoa: 64, turin: 8 }

/**
 * Parses the extensions of a VCEK or VLEK for the given product. Every patch level of the product must be present,
 * and none of another product; unknown or repeated ones are refused.
 * @throws MalformedEvidence when an extension breaks these rules, with the reason
 */
export function readVekExtensions(
  { extensions }: Certificate,
  product: Product,
  kind: VekKind,
): VekClaims {
  const ids = extensions.map(({ id }) => id)
  if (new Set(ids).size !== ids.length) throw fault('an extension stands there twice')
  const known = new Set([STRUCT_VERSION, PRODUCT_NAME, HWID, CSP_ID, ...RESERVED_SPL_IDS])
  for (const [component] of TCB_LAYOUT[product]) known.add(SPL_IDS[component])
  const unknown = extensions.some(
    ({ id, critical }) => !known.has(id) && (critical || id.startsWith(AMD_ARC)),
  )
  if (unknown) throw fault(`an extension that ${AMD_NAMES[product]} does not have`)

  const values = new Map(extensions.map(({ id, value }) => [id, value]))
  if (readLevel(values.get(STRUCT_VERSION)) !== STRUCT_VERSIONS[product]) {
    throw fault(`structVersion is not that of ${AMD_NAMES[product]}`)
  }
  const name = readText(values.get(PRODUCT_NAME))
  if (name !== AMD_NAMES[product] && !name.startsWith(`${AMD_NAMES[product]}-`)) {
    throw fault(`productName is not ${AMD_NAMES[product]}`)
  }
  const tcb = Object.fromEntries(
    TCB_LAYOUT[product].map(([component]) => [
      component,
      readLevel(values.get(SPL_IDS[component])),
    ]),
  )
  return { tcb, ...readSubject(values.get(HWID), values.get(CSP_ID), product, kind) }
}

/** Reads the subject: a chip or a cloud provider, never both. */
function readSubject(
  hwid: Bytes | undefined,
  cspId: Bytes | undefined,
  product: Product,
  kind: VekKind,
): Pick<VekClaims, 'hwid' | 'cspId'> {
  if ((hwid === undefined) === (cspId === undefined)) {
    throw fault('not exactly one of HWID and CSP_ID')
  }
  if ((kind === 'vcek') !== (hwid !== undefined)) throw fault(`HWID or CSP_ID wrong for a ${kind}`)
  return {
    hwid: hwid === undefined ? undefined : unwrapHwid(hwid, HWID_BYTES[product]),
    cspId: cspId === undefined ? undefined : readText(cspId),
  }
}

/**
 * Reads the chip id. AMD writes it raw; an OCTET STRING around it is accepted, too. The length decides which it is, not
 * the first byte.
 */
function unwrapHwid(value: Bytes, length: number): Bytes {
  const chipId = value.length === length ? value : readDer(value, TAG.octetString).body
  if (chipId.length !== length) throw fault(`HWID is not ${length} bytes long`)
  return chipId
}

function readLevel(value: Bytes | undefined): number {
  if (value === undefined) throw fault('a patch level or structVersion is missing')
  const level = readSmallInteger(readDer(value, TAG.integer))
  if (level > 255) throw fault('a patch level is above 255')
  return level
}

function readText(value: Bytes | undefined): string {
  if (value === undefined) throw fault('productName is missing')
  const { body } = readDer(value, TAG.ia5String)
  if (body.some((byte) => byte > 0x7f)) throw malformed('IA5String beyond ASCII')
  return fromUtf8(body)
}

function fault(reason: string): MalformedEvidence {
  return new MalformedEvidence('chip certificate', reason)
}
