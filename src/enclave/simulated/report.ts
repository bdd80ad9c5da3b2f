import { type Bytes } from '../../protocol/bytes.ts'
import type { Product } from '../../verify/snp/product.ts'
import {
  REPORT_BYTES,
  REPORT_LAYOUT,
  SIGNED_BYTES,
  type ReportField,
} from '../../verify/snp/report-layout.ts'
import { TCB_LAYOUT, type Tcb } from '../../verify/snp/tcb.ts'
import type { SimulatedChain } from './chain.ts'

/** Fields by name: bytes as they appear in the report, or an integer that is written little-endian. */
export type ReportFields = Partial<Record<ReportField, Bytes | number | bigint>>

const CPUID: Record<Product, Bytes> = {
  milan: Uint8Array.of(0x19, 0x01, 0x01),
  genoa: Uint8Array.of(0x19, 0x11, 0x01),
  turin: Uint8Array.of(0x1a, 0x02, 0x01),
}

/** Bit 16 allows SMT, bit 17 must be one; no debugging, no migration. */
const GUEST_POLICY = 0x30000

/** SMT on, ECC memory, alias check complete. */
const PLATFORM_INFO = 0x25

/** Build 61, minor 55, major 1. */
const FIRMWARE = Uint8Array.of(61, 55, 1)

/**
 * A report of the simulated chip, 1184 bytes, with the layout and signature of real firmware. Any field may be given,
 * including `version` (default 5); REPORT_DATA and MEASUREMENT are zero by default.
 */
export async function signSimulatedReport(
  chain: SimulatedChain,
  fields: ReportFields,
): Promise<Bytes> {
  const report = new Uint8Array(REPORT_BYTES)
  for (const [name, value] of Object.entries({
    ...defaultFields(chain, fields.version),
    ...fields,
  })) {
    writeField(report, name, value)
  }
  return signReport(report, chain.vek)
}

/** Signs the report, reserved bytes included, and writes the signature into it. */
export async function signReport(report: Bytes, vek: CryptoKey): Promise<Bytes> {
  const scheme = { name: 'ECDSA', hash: 'SHA-384' }
  const signed = report.slice(0, SIGNED_BYTES)
  const signature = new Uint8Array(await crypto.subtle.sign(scheme, vek, signed))
  const complete = report.slice()
  complete.set(signature.slice(0, 48).toReversed(), REPORT_LAYOUT.signatureR[0])
  complete.set(signature.slice(48).toReversed(), REPORT_LAYOUT.signatureS[0])
  return complete
}

function defaultFields(chain: SimulatedChain, version: ReportFields['version'] = 5): ReportFields {
  const tcb = writeTcb(chain.product, chain.tcb)
  return {
    version,
    policy: GUEST_POLICY,
    signatureAlgorithm: 1,
    currentTcb: tcb,
    platformInfo: PLATFORM_INFO,
    keyInfo: chain.kind === 'vlek' ? 1 << 2 : 0,
    reportIdMa: new Uint8Array(32).fill(0xff),
    reportedTcb: tcb,
    ...(version === 2 ? {} : { cpuid: CPUID[chain.product] }),
    chipId: chain.chipId,
    committedTcb: tcb,
    currentFirmware: FIRMWARE,
    committedFirmware: FIRMWARE,
    launchTcb: tcb,
  }
}

/** TCB_VERSION in the product's layout, 8 bytes. */
export function writeTcb(product: Product, tcb: Tcb): Bytes {
  const bytes = new Uint8Array(8)
  for (const [component, byte] of TCB_LAYOUT[product]) bytes[byte] = tcb[component] ?? 0
  return bytes
}

function writeField(report: Bytes, name: string, value: Bytes | number | bigint): void {
  const place = Object.entries(REPORT_LAYOUT).find(([field]) => field === name)?.[1]
  if (place === undefined) throw new TypeError(`no report field named ${name}`)
  const [offset, length] = place
  const bytes = typeof value === 'object' ? value : littleEndian(BigInt(value), length)
  if (bytes.length !== length) throw new TypeError(`report field ${name} takes ${length} bytes`)
  report.set(bytes, offset)
}

function littleEndian(value: bigint, length: number): Bytes {
  return Uint8Array.from({ length }, (_, index) => Number((value >> BigInt(8 * index)) & 0xffn))
}
