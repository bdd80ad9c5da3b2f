import type { Bytes } from '../../protocol/bytes.ts'
import { PAGE_BYTES } from './page-chain.ts'

/** Where the first processor starts, at the architecture's reset vector. */
export const RESET_VECTOR = 0xffff_fff0

/** The parts of a virtual processor's initial state that differ between guests. */
export interface ProcessorStart {
  /** Guest physical address of its first instruction, below 4 GiB. */
  readonly startAddress: number
  /** Family, model and stepping in the form of CPUID Fn0000_0001 EAX. */
  readonly signature: number
  /** SEV_FEATURES: bit 0 SNPActive, bit 5 DebugSwap and so on. */
  readonly features: bigint
}

/** Selector, attributes, limit, base: 16 bytes each. */
interface Segment {
  readonly offset: number
  readonly selector?: number
  readonly attributes: number
  readonly base?: number
}

const DATA = 0x93
const CODE = 0x9b
const LOCAL_TABLE = 0x82
const BUSY_TASK = 0x8b

/** All limits are 64 KiB - 1 after a reset. */
const SEGMENT_LIMIT = 0xffff

/**
 * The encrypted save area (VMSA) of a virtual processor as KVM leaves it after QEMU's reset: one page, mostly zero.
 *
 * Sources: AMD64 Architecture Programmer's Manual volume 2, table B-4 (offsets) and section 14.1.3 (state after
 * reset); KVM adds EFER.SVME and CR4.MCE; QEMU passes the CPU signature in RDX.
 */
export function saveArea({ startAddress, signature, features }: ProcessorStart): Bytes {
  const page = new DataView(new ArrayBuffer(PAGE_BYTES))
  const codeBase = (startAddress & 0xffff_0000) >>> 0
  for (const segment of segments(codeBase)) writeSegment(page, segment)
  for (const [offset, value] of REGISTERS) page.setBigUint64(offset, value, true)
  page.setBigUint64(0x178, BigInt(startAddress & 0xffff), true) // RIP
  page.setBigUint64(0x310, BigInt(signature), true) // RDX
  page.setBigUint64(0x3b0, features, true) // SEV_FEATURES
  page.setUint32(0x408, 0x1f80, true) // MXCSR: all exceptions masked
  page.setUint16(0x410, 0x37f, true) // x87 control word: all exceptions masked
  return new Uint8Array(page.buffer)
}

function segments(codeBase: number): readonly Segment[] {
  return [
    { offset: 0x00, attributes: DATA }, // ES
    { offset: 0x10, selector: 0xf000, attributes: CODE, base: codeBase }, // CS
    { offset: 0x20, attributes: DATA }, // SS
    { offset: 0x30, attributes: DATA }, // DS
    { offset: 0x40, attributes: DATA }, // FS
    { offset: 0x50, attributes: DATA }, // GS
    { offset: 0x60, attributes: 0 }, // GDTR
    { offset: 0x70, attributes: LOCAL_TABLE }, // LDTR
    { offset: 0x80, attributes: 0 }, // IDTR
    { offset: 0x90, attributes: BUSY_TASK }, // TR
  ]
}

/** 64-bit registers that are the same in every guest and not zero. */
const REGISTERS: readonly (readonly [offset: number, value: bigint])[] = [
  [0x0d0, 0x1000n], // EFER: SVME
  [0x148, 0x40n], // CR4: MCE
  [0x158, 0x10n], // CR0: ET
  [0x160, 0x400n], // DR7
  [0x168, 0xffff_0ff0n], // DR6
  [0x170, 0x2n], // RFLAGS
  [0x268, 0x0007_0406_0007_0406n], // G_PAT: the default memory types
  [0x3e8, 0x1n], // XCR0: x87
]

function writeSegment(page: DataView, { offset, selector, attributes, base }: Segment): void {
  page.setUint16(offset, selector ?? 0, true)
  page.setUint16(offset + 2, attributes, true)
  page.setUint32(offset + 4, SEGMENT_LIMIT, true)
  page.setBigUint64(offset + 8, BigInt(base ?? 0), true)
}
