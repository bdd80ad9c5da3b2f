import { concatBytes, copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

const PAGE_BYTES = 4096
const GIB = 0x4000_0000
const FOUR_GIB = 4 * GIB
/** From this size on, QEMU puts 2 GiB below the gap for devices and the rest above 4 GiB. */
const SPLIT_FROM = 0xb000_0000
const LOW_END = 2 * GIB

/** Types of resource in a list of hand-off blocks (UEFI PI, volume 3; TDX virtual firmware design guide). */
const ACCEPTED = 0x00
const UNACCEPTED = 0x07

interface Range {
  readonly type: typeof ACCEPTED | typeof UNACCEPTED
  readonly start: number
  readonly bytes: number
}

/** The memory areas of a firmware, and the place of its list of memory in them. */
interface Witness {
  readonly listAddress: number
  readonly own: readonly Omit<Range, 'type'>[]
}

/**
 * SHA-384 of the list of memory (TD HOB) that QEMU hands to a TDX firmware, the first event of RTMR0, for a machine
 * with this much memory. The witness says where the firmware's own memory is (dstack, `TdHobWitnessV1`): page numbers
 * and counts in LEB128.
 * @throws EvidenceRefused `measurement` (`memory_list`) when witness and memory size do not fit together
 */
export async function digestMemoryList(witness: Uint8Array, memoryBytes: number): Promise<Bytes> {
  const { listAddress, own } = readWitness(witness)
  const blocks = rangesOf(own, memoryBytes).map(resourceBlock)
  const list = concatBytes(new Uint8Array(HEADER_BYTES), ...blocks)
  list.set(headerBlock(listAddress + list.length + END_BYTES))
  return new Uint8Array(await crypto.subtle.digest('SHA-384', list))
}

function rangesOf(own: Witness['own'], memoryBytes: number): Range[] {
  const ranges: Range[] = []
  let next = 0
  for (const { start, bytes } of own) {
    if (start > next) ranges.push({ type: UNACCEPTED, start: next, bytes: start - next })
    ranges.push({ type: ACCEPTED, start, bytes })
    next = start + bytes
  }
  const split = memoryBytes >= SPLIT_FROM
  const lowEnd = split ? LOW_END : memoryBytes
  if (next >= lowEnd) throw broken()
  ranges.push({ type: UNACCEPTED, start: next, bytes: lowEnd - next })
  if (split) ranges.push({ type: UNACCEPTED, start: FOUR_GIB, bytes: memoryBytes - LOW_END })
  return ranges
}

function readWitness(witness: Uint8Array): Witness {
  const numbers = readNumbers(witness)
  const [base = 0, list = 0, count = 0, ...pairs] = numbers
  if (numbers.length < 3 || pairs.length !== 2 * count) throw broken()
  const own = Array.from({ length: count }, (_, index) => ({
    start: (base + (pairs[2 * index] ?? 0)) * PAGE_BYTES,
    bytes: (pairs[2 * index + 1] ?? 0) * PAGE_BYTES,
  }))
  const ends = own.map(({ start, bytes }) => start + bytes)
  const ordered = own.every(({ start, bytes }, at) => bytes > 0 && start >= (ends[at - 1] ?? 0))
  if (!ordered) throw broken()
  return { listAddress: (base + list) * PAGE_BYTES, own }
}

/** A page number has 36 bits at most. */
const MAX_NUMBER_BYTES = 6

function readNumbers(witness: Uint8Array): number[] {
  const numbers: number[] = []
  let [value, length] = [0, 0]
  for (const byte of witness) {
    value += (byte & 0x7f) * 2 ** (7 * length)
    length++
    if (length > MAX_NUMBER_BYTES) throw broken()
    if (byte >= 0x80) continue
    numbers.push(value)
    ;[value, length] = [0, 0]
  }
  if (length > 0) throw broken()
  return numbers
}

const HEADER_BYTES = 56
const RESOURCE_BYTES = 48
/** The end block of the list is not measured, but its place is. */
const END_BYTES = 8

/** EFI_HOB_HANDOFF_INFO_TABLE, version 9. */
function headerBlock(end: number): Bytes {
  const block = new DataView(new ArrayBuffer(HEADER_BYTES))
  block.setUint16(0, 1, true)
  block.setUint16(2, HEADER_BYTES, true)
  block.setUint32(8, 9, true)
  block.setBigUint64(48, BigInt(end), true)
  return copyBytes(new Uint8Array(block.buffer))
}

/** Present, initialized, tested. */
const ATTRIBUTES = 7

/** EFI_HOB_RESOURCE_DESCRIPTOR without an owner. */
function resourceBlock({ type, start, bytes }: Range): Bytes {
  const block = new DataView(new ArrayBuffer(RESOURCE_BYTES))
  block.setUint16(0, 3, true)
  block.setUint16(2, RESOURCE_BYTES, true)
  block.setUint32(24, type, true)
  block.setUint32(28, ATTRIBUTES, true)
  block.setBigUint64(32, BigInt(start), true)
  block.setBigUint64(40, BigInt(bytes), true)
  return copyBytes(new Uint8Array(block.buffer))
}

function broken(): EvidenceRefused {
  return new EvidenceRefused('measurement', ['memory_list'])
}
